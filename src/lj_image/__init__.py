"""Release engineering for AI container images: manifest, lock, Dockerfile, image, proof, published."""

__version__ = "0.1.0"
