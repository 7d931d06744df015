"""What every test relies on, wherever the run was started."""

import signal

# A shell that starts a run in the background has it ignore Ctrl-C, and so would all commands that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
