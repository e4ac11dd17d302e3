"""Layers for HTTP clients, and bridges to frameworks: a module each, which imports what it is for.

`import reprieve` imports none of them. Each has an extra of its name: `pip install "reprieve[httpx]"`.
"""
