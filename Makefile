# The book and its checks. A fresh clone needs only make and Python 3.11 or newer.
.DEFAULT_GOAL := help
.PHONY: help book pdf test run lock proofs clean

PYTHON    ?=
NOTEBOOKS ?= $(wildcard book/*.ipynb) tools/template/chapter.ipynb tests/canaries/healthy.ipynb

python := .venv/bin/python
ready  := .venv/.ready

help:
	@echo "make book    build the site into _build/html"
	@echo "make pdf     print the built site into _build/icalign.pdf; needs Chromium, takes a few minutes"
	@echo "make test    run every check that needs no browser"
	@echo "make run     execute the notebooks in place, in fresh kernels  (NOTEBOOKS=book/03-selection.ipynb)"
	@echo "make lock    write constraints.txt from what is installed, and from the pins what Binder installs"
	@echo "make proofs  check the proofs in proofs/ with Rocq, and compare what its kernel says with what the book shows"
	@echo "make clean   remove .venv, _build and the caches"
	@echo "The first of them makes .venv; PYTHON=/path/to/python chooses its interpreter."

book: $(ready)
	@echo "Building the site ..."
	@.venv/bin/jupyter-book build -q --all -n -W --keep-going . >/dev/null
	@$(python) -c "import pathlib; print('Open', pathlib.Path('_build/html/index.html').resolve().as_uri())"

pdf: book
	@echo "Printing its pages ..."
	@$(python) -m tools.pdf

test: $(ready)
	@$(python) -m tools.check

run: $(ready)
	@$(python) -m tools.notebooks $(NOTEBOOKS)

lock: $(ready)
	@$(python) -m tools.lock
	@$(python) -m tools.launch

proofs: $(ready)
	@$(python) -m tools.proofs

clean:
	rm -rf .venv _build .hypothesis *.egg-info
	find . -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

$(ready): requirements.txt constraints.txt pyproject.toml tools/bootstrap
	@PYTHON="$(PYTHON)" tools/bootstrap
	@touch $@
