"""`python -m ljperf`: what torchrun and the DeepSpeed launcher start on each rank."""

from ljperf.cli import main

main()
