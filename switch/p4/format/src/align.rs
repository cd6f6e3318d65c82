//! Columns: names, `=`, colons and comments of neighbouring lines stand below each other where the author began to write them so.

use crate::layout::{Line, Mark};

/// Gives each place its blanks.
pub(crate) fn align(lines: &mut [Line]) {
    for mark in [Mark::Name, Mark::Assign, Mark::Colon, Mark::Target, Mark::Comment] {
        let mut start = 0;
        while start < lines.len() {
            if place(&lines[start], mark).is_none() {
                start += 1;
                continue;
            }
            let mut end = start + 1;
            while end < lines.len() && belongs(&lines[start], &lines[end], mark) {
                end += 1;
            }
            columns(&mut lines[start..end], mark);
            start = end;
        }
    }
}

fn belongs(first: &Line, next: &Line, mark: Mark) -> bool {
    !next.blank_before && !next.verbatim && next.indent == first.indent && place(next, mark).is_some()
}

/// The index of the mark.
fn place(line: &Line, mark: Mark) -> Option<usize> {
    line.marks.iter().position(|(kind, ..)| *kind == mark)
}

fn columns(lines: &mut [Line], mark: Mark) {
    let least = match mark {
        Mark::Colon => 0,
        _ => 1,
    };
    let written = |line: &Line| place(line, mark).map_or(0, |i| line.marks[i].2);
    let wide = lines.iter().any(|line| written(line) > 1);
    if !wide {
        return;
    }
    let least = if mark == Mark::Comment { 2 } else { least };
    let ends: Vec<usize> = lines.iter().map(|line| before(line, mark)).collect();
    let column = ends.iter().max().unwrap_or(&0) + least;
    for (line, end) in lines.iter_mut().zip(ends) {
        let Some(i) = place(line, mark) else { continue };
        let at = line.marks[i].1;
        let code = line.text[..at].trim_end_matches(' ').len();
        let blanks = column - end;
        line.text.replace_range(code..at, &" ".repeat(blanks));
        let new = code + blanks;
        for (_, place, _) in &mut line.marks {
            if *place >= at {
                *place = *place - at + new;
            }
        }
    }
}

/// The columns of the text before the mark.
fn before(line: &Line, mark: Mark) -> usize {
    place(line, mark).map_or(0, |i| line.text[..line.marks[i].1].trim_end_matches(' ').chars().count())
}
