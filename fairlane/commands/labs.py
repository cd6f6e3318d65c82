"""`fairlane labs`: the labs copied, and answers graded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane.commands.app import App
from fairlane.terminal import console

app = App()


labs = App(no_args_is_help=True, help="The labs: copy them, and check your answers.")
app.add_typer(labs, name="labs")


@labs.command("copy")
def copy_labs(
    folder: Annotated[Path, typer.Argument(help="The new folder; must not exist.")] = Path("labs"),
    student: Annotated[
        str,
        typer.Option(
            "--for", metavar="NAME", help="A student, as the folder of the answers will be called: with --secret.", show_default=False
        ),
    ] = "",
    secret: Annotated[
        Path | None,
        typer.Option("--secret", metavar="FILE", help="Draw numbers of the student's own from this file's bytes.", show_default=False),
    ] = None,
) -> None:
    """Copy the labs into a new folder, to work there. Its README.md lists them."""
    from fairlane.errors import Refusal
    from fairlane.labs import keys
    from fairlane.labs.grading.labs import copy

    if (secret is None) != (not student):
        raise Refusal("--for and --secret go together: whose lab, and drawn from what")
    copy(folder, keys.secret(secret) if secret is not None else None, student)
    console.print(f"labs: {folder}; begin with {folder}/01/README.md", highlight=False, markup=False, soft_wrap=True)


@labs.command("check")
def check_lab(
    number: Annotated[str, typer.Argument(help="The lab's number, such as 04.", show_default=False)],
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder of the files to grade. Default: labs/NUMBER, NUMBER, or the current folder.", show_default=False),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the points as JSON, too.", show_default=False)
    ] = None,
    classroom: Annotated[
        bool, typer.Option("--classroom", help="Print the line that GitHub Classroom's reporter reads, and no text.")
    ] = False,
) -> None:
    """Grade the answer to a lab: points, observations, and a hint. Exit code 1 unless the answer gets all points."""
    import json

    from fairlane.labs.classes import tables
    from fairlane.labs.grading import labs as known
    from fairlane.labs.grading import runner

    lab = known.find(number)
    grade = known.graded(lab, folder if folder is not None else known.answer(lab))
    if classroom:
        console.print(tables.classroom(grade), highlight=False, markup=False, soft_wrap=True)
    else:
        console.print(runner.text(grade), highlight=False, markup=False, soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(grade.as_json(), indent=2) + "\n", encoding="utf-8", newline="\n")
    raise typer.Exit(0 if grade.points >= grade.of or classroom else 1)


@labs.command("grade")
def grade_class(
    folder: Annotated[Path, typer.Argument(help="The folder that has a folder for each student.", show_default=False)],
    numbers: Annotated[str, typer.Option("--labs", metavar="NN,...", help="These labs alone. Default: all.", show_default=False)] = "",
    table: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the points as a table.", show_default=False)] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a page: points, what was missed, lab 10's ranking.", show_default=False),
    ] = None,
    moodle: Annotated[
        Path | None, typer.Option("--moodle", metavar="FILE", help="Write a table that Moodle imports.", show_default=False)
    ] = None,
    canvas: Annotated[
        Path | None, typer.Option("--canvas", metavar="FILE", help="Write a table that Canvas imports.", show_default=False)
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            "--names", metavar="FILE", help="Table of the class: columns folder, name, and email and id where known.", show_default=False
        ),
    ] = None,
    secret: Annotated[
        Path | None,
        typer.Option("--secret", metavar="FILE", help="The file that the students' own numbers were drawn from.", show_default=False),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, max=256, metavar="N", help="Answers at a time. Default: the cores.", show_default=False),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where results are kept, so that only what has changed is graded again.")
    ] = Path("results/class"),
) -> None:
    """Grade a class: a folder of answers for each student, all labs. One bad answer stops no other."""
    import os
    import time

    from fairlane.labs import keys
    from fairlane.labs.classes import answers, page, tables
    from fairlane.labs.grading import apart

    begun = time.monotonic()
    class_, of_labs = answers.students(folder, names), answers.chosen(numbers)
    key = keys.secret(secret) if secret is not None else None
    if problem := apart.protection():
        console.print(f"not fully protected: {problem}", highlight=False, markup=False, soft_wrap=True)

    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    rows = answers.grade(class_, of_labs, out, jobs or os.cpu_count() or 1, say, key)
    seconds = time.monotonic() - begun
    for row in rows:
        for what in row.tried:
            say(f"look at {row.student.name}, {what}")
    for write, file in ((tables.plain, table), (tables.moodle, moodle), (tables.canvas, canvas)):
        if file is not None:
            write(rows, file)
            say(f"written: {file}")
    if report is not None:
        page.write(rows, of_labs, seconds, report)
        say(f"written: {report}")
    of = sum(one.of for one in rows[0].graded)
    kept = sum(one.kept for row in rows for one in row.graded)
    say(f"{len(rows)} students, {len(of_labs)} labs, {of} points: {seconds:.0f} s" + (f"; {kept} results taken from {out}" if kept else ""))
