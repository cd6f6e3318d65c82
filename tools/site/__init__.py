"""What the site of the documentation needs beside mkdocs: see README.md."""
