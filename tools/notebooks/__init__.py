"""The labs' notebooks: written from labs/NN/notebook.py, and run by a test. See README.md."""
