//! Pieces to lines: where a line ends, and how far it is indented.

use fairlane_syntax::token::Punct;

use crate::pieces::{Kind, Piece};
use crate::roles::{group, spaced, Braces, Group, Paren, Role, Roles};

/// Columns of one level.
const INDENT: usize = 4;

/// A place of a line that may be aligned with those of its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The name of a field or constant.
    Name,
    /// `=`
    Assign,
    /// The colon of a label.
    Colon,
    /// What follows such a colon.
    Target,
    /// A comment behind the code.
    Comment,
}

/// A line of the output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// Without its indentation.
    pub text: String,
    pub indent: usize,
    /// Places in `text`, in bytes, and how many blanks the author wrote before each.
    pub marks: Vec<(Mark, usize, usize)>,
    pub blank_before: bool,
    /// Whether `text` is the whole line, its indentation and further lines included.
    pub verbatim: bool,
}

/// What is open where a piece stands.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Block {
        indent: usize,
        braces: Braces,
        /// Whether an `else` may follow it.
        of_if: bool,
        /// Whether it stands on one line.
        flat: bool,
    },
    /// The statement of an `if` or `else` without braces.
    Body { indent: usize, of_if: bool },
    Bracket {
        /// Where further lines begin.
        content: usize,
        /// Where its end stands if it begins a line.
        close: usize,
        /// Its place in the line being written.
        opened: Option<usize>,
    },
}

/// The state that a branch of `#if` begins with.
#[derive(Debug, Clone, Default)]
struct State {
    frames: Vec<Frame>,
    /// Whether the next piece begins a statement.
    begins: bool,
    /// Whether the statement being read begins with `if`, and has its condition.
    after_head: Option<bool>,
}

/// A place where a line that is too long can be broken.
#[derive(Debug, Clone, Copy)]
struct Break {
    at: usize,
    depth: usize,
    indent: usize,
}

pub(crate) struct Layout<'a> {
    pieces: &'a [Piece<'a>],
    roles: &'a Roles,
    width: usize,
    lines: Vec<Line>,
    line: Line,
    breaks: Vec<Break>,
    state: State,
    saved: Vec<State>,
}

/// Lays the pieces out.
pub(crate) fn lines(pieces: &[Piece], roles: &Roles, width: usize) -> Vec<Line> {
    let state = State { begins: true, ..State::default() };
    let mut layout =
        Layout { pieces, roles, width, lines: Vec::new(), line: Line::default(), breaks: Vec::new(), state, saved: Vec::new() };
    for i in 0..pieces.len() {
        layout.piece(i);
    }
    layout.flush();
    layout.lines
}

impl Layout<'_> {
    fn piece(&mut self, i: usize) {
        let piece = &self.pieces[i];
        match piece.kind {
            Kind::Directive => self.directive(i),
            Kind::LineComment | Kind::BlockComment => self.comment(i),
            _ => self.token(i),
        }
    }

    fn before(&self, i: usize) -> Option<&Piece<'_>> {
        i.checked_sub(1).map(|b| &self.pieces[b])
    }

    fn role(&self, i: usize) -> Role {
        self.roles.roles[i]
    }

    // -- lines

    fn is_empty(&self) -> bool {
        self.line.text.is_empty()
    }

    fn flush(&mut self) {
        self.breaks.clear();
        if !self.is_empty() {
            self.lines.push(std::mem::take(&mut self.line));
        }
        for frame in &mut self.state.frames {
            if let Frame::Bracket { opened, .. } = frame {
                *opened = None;
            }
        }
    }

    /// Begins a line with the piece.
    fn start(&mut self, i: usize, indent: usize) {
        self.flush();
        self.line.indent = indent;
        let after_open = self.before(i).is_some_and(|before| before.is(Punct::OpenBrace) && matches!(self.role(i - 1), Role::Block(_)));
        let ends = self.pieces[i].is(Punct::CloseBrace);
        self.line.blank_before = self.pieces[i].lines > 1 && !after_open && !ends && !self.lines.is_empty();
    }

    fn column(&self) -> usize {
        self.line.indent + self.line.text.chars().count()
    }

    // -- indentation

    fn level(&self) -> usize {
        match self.state.frames.last() {
            Some(Frame::Block { indent, .. } | Frame::Body { indent, .. }) => *indent,
            Some(Frame::Bracket { content, .. }) => *content,
            None => 0,
        }
    }

    /// The indentation of the statement in work.
    fn statement_level(&self) -> usize {
        let outer = self.state.frames.iter().rev().find(|frame| !matches!(frame, Frame::Bracket { .. }));
        match outer {
            Some(Frame::Block { indent, .. } | Frame::Body { indent, .. }) => *indent,
            _ => 0,
        }
    }

    fn in_bracket(&self) -> bool {
        matches!(self.state.frames.last(), Some(Frame::Bracket { .. }))
    }

    /// The indentation of a piece that begins a line.
    fn indentation(&self, i: usize) -> usize {
        let piece = &self.pieces[i];
        let closes = piece.is(Punct::CloseBrace) || piece.is(Punct::CloseParen) || piece.is(Punct::CloseBracket);
        match self.state.frames.last() {
            Some(Frame::Bracket { close, .. }) if closes => *close,
            Some(Frame::Block { indent, .. }) if piece.is(Punct::CloseBrace) => indent.saturating_sub(INDENT),
            Some(Frame::Body { .. }) if piece.is(Punct::CloseBrace) => {
                let block = self.state.frames.iter().rev().find_map(|frame| match frame {
                    Frame::Block { indent, .. } => Some(*indent),
                    _ => None,
                });
                block.unwrap_or(0).saturating_sub(INDENT)
            }
            Some(Frame::Bracket { content, .. }) => *content,
            _ if self.state.begins || !self.continues(i) => self.level(),
            _ => self.level() + INDENT,
        }
    }

    /// Whether the piece goes on with the statement of the line before. A macro may stand for a statement with its `;`, so a word after a
    /// word does not.
    fn continues(&self, i: usize) -> bool {
        let piece = &self.pieces[i];
        let Some(before) = (0..i).rev().map(|b| &self.pieces[b]).find(|b| !b.is_comment()) else { return false };
        if piece.is(Punct::OpenBrace) || matches!(before.kind, Kind::Directive | Kind::Annotation | Kind::Pragma) {
            return false;
        }
        let open = matches!(before.kind, Kind::Punct(p) if !matches!(p, Punct::CloseParen | Punct::CloseBrace | Punct::CloseBracket | Punct::Semicolon))
            && !before.is(Punct::Greater);
        open || matches!(piece.kind, Kind::Punct(p) if !matches!(p, Punct::At | Punct::OpenBrace | Punct::OpenParen))
            || (piece.is(Punct::OpenParen) && before.kind == Kind::Word)
            || before.is_word(&["transition", "return", "const", "typedef", "type"])
    }

    // -- pieces

    fn directive(&mut self, i: usize) {
        self.flush();
        let piece = &self.pieces[i];
        let change = group(&piece.text);
        match change {
            Some(Group::Opens) => self.saved.push(self.state.clone()),
            Some(Group::Another) => self.state = self.saved.last().cloned().unwrap_or_default(),
            Some(Group::Closes) => {
                self.saved.pop();
            }
            None => {}
        }
        let blank_before = piece.lines > 1 && !self.lines.is_empty();
        self.lines.push(Line { text: piece.text.to_string(), verbatim: true, blank_before, ..Line::default() });
    }

    fn comment(&mut self, i: usize) {
        let piece = &self.pieces[i];
        let own = i == 0 || piece.lines > 0 || self.before(i).is_some_and(|b| b.kind == Kind::Directive);
        if own {
            let next = self.pieces[i + 1..].iter().position(|p| !p.is_comment() && p.kind != Kind::Directive).map(|n| i + 1 + n);
            let indent = match next {
                // A comment before the end of a block belongs to the block.
                Some(n) if self.pieces[n].is(Punct::CloseBrace) || self.pieces[n].is(Punct::CloseParen) => self.level(),
                Some(n) => self.indentation(n),
                None => self.level(),
            };
            self.start(i, indent);
        } else if self.is_empty() {
            let indent = if self.in_bracket() { self.level() } else { self.indentation(i) };
            self.start(i, indent);
        } else {
            let ends = self.pieces.get(i + 1).is_none_or(|next| next.lines > 0 || next.kind == Kind::Directive);
            if spaced(self.pieces, &self.roles.roles, i) || ends {
                self.line.text.push(' ');
            }
            if ends && !piece.text.contains('\n') {
                let at = self.line.text.len();
                self.line.marks.push((Mark::Comment, at, piece.gap.max(1)));
            }
        }
        let shifted = shift(&piece.text, piece.column, self.column());
        self.line.text.push_str(&shifted);
        let next = self.pieces.get(i + 1);
        if piece.kind == Kind::LineComment || next.is_none_or(|next| next.lines > 0) {
            self.flush();
        }
    }

    fn token(&mut self, i: usize) {
        if self.wants_line(i) {
            let indent = self.indentation(i);
            self.start(i, indent);
        } else {
            if spaced(self.pieces, &self.roles.roles, i) {
                self.line.text.push(' ');
            }
            self.break_here(i);
            self.mark(i);
        }
        let piece = &self.pieces[i];
        self.line.text.push_str(&piece.text);
        self.wrap();
        self.enter(i);
    }

    /// Whether the piece begins a line.
    fn wants_line(&self, i: usize) -> bool {
        if self.is_empty() {
            return true;
        }
        let piece = &self.pieces[i];
        let Some(before) = self.before(i) else { return true };
        let b = i - 1;
        let flat = matches!(self.state.frames.last(), Some(Frame::Block { flat: true, .. }));
        if flat || before.is_comment() {
            return piece.lines > 0 && !flat;
        }
        // Here a line always ends.
        let in_block = !self.in_bracket();
        let after_block = before.is(Punct::CloseBrace) && matches!(self.role(b), Role::Block(_));
        if in_block && !before.is_comment() {
            if before.is(Punct::Semicolon) || (before.is(Punct::OpenBrace) && matches!(self.role(b), Role::Block(_))) {
                return true;
            }
            if piece.is(Punct::CloseBrace) && matches!(self.role(i), Role::Block(_)) {
                return true;
            }
            if after_block {
                return !(piece.is_word(&["else"]) || [Punct::Semicolon, Punct::Comma, Punct::CloseParen].iter().any(|p| piece.is(*p)));
            }
        }
        if before.kind == Kind::Pragma || piece.kind == Kind::Pragma {
            return true;
        }
        if piece.lines == 0 {
            return false;
        }
        // And here never.
        let joins = [Punct::Semicolon, Punct::Comma].iter().any(|p| piece.is(*p))
            || (piece.is(Punct::OpenBrace) && matches!(self.role(i), Role::Block(_)) && !self.state.begins);
        !joins
    }

    /// Remembers that the line may be broken before the piece.
    fn break_here(&mut self, i: usize) {
        let Some(before) = self.before(i) else { return };
        let operator = self.role(i) == Role::Binary
            && !matches!(self.pieces[i].kind, Kind::Punct(Punct::Assign | Punct::Greater | Punct::GreaterEq | Punct::Less));
        if !before.is(Punct::Comma) && !operator {
            return;
        }
        let depth = self.state.frames.iter().filter(|frame| matches!(frame, Frame::Bracket { .. })).count();
        let indent = if self.in_bracket() { self.level() } else { self.statement_level() + INDENT };
        let at = self.line.text.len();
        // Else nothing is won.
        if indent + 8 < self.column() {
            self.breaks.push(Break { at, depth, indent });
        }
    }

    /// Breaks the line where it has become too long.
    fn wrap(&mut self) {
        if self.column() <= self.width {
            return;
        }
        let Some(least) = self.breaks.iter().map(|b| b.depth).min() else { return };
        let Some(found) = self.breaks.iter().rev().find(|b| b.depth == least).copied() else { return };
        let rest = self.line.text.split_off(found.at);
        let cut = found.at;
        while self.line.text.ends_with(' ') {
            self.line.text.pop();
        }
        let old = self.line.indent + cut;
        let next = Line { text: rest, indent: found.indent, ..Line::default() };
        let mut marks = std::mem::take(&mut self.line.marks);
        marks.retain(|(_, at, _)| *at < cut);
        self.line.marks = marks;
        self.lines.push(std::mem::replace(&mut self.line, next));
        // What the part that moved has opened moves with it.
        for frame in &mut self.state.frames {
            if let Frame::Bracket { content, close, opened } = frame {
                match opened {
                    Some(at) if *at >= cut => {
                        *at -= cut;
                        let hanging = *content == *close + INDENT;
                        *content = if hanging { found.indent + INDENT } else { (*content + found.indent).saturating_sub(old) };
                        *close = found.indent;
                    }
                    _ => *opened = None,
                }
            }
        }
        self.breaks = self
            .breaks
            .iter()
            .filter(|b| b.at > cut)
            .map(|b| Break { at: b.at - cut, depth: b.depth, indent: (b.indent + found.indent).saturating_sub(old).max(found.indent) })
            .collect();
    }

    fn mark(&mut self, i: usize) {
        let in_block = matches!(self.state.frames.last(), Some(Frame::Block { flat: false, .. }) | None);
        if !in_block {
            return;
        }
        let piece = &self.pieces[i];
        let next = self.pieces.get(i + 1);
        let fields = matches!(self.state.frames.last(), Some(Frame::Block { braces: Braces::Fields, .. }));
        let kind = if piece.is(Punct::Assign) {
            Mark::Assign
        } else if self.role(i) == Role::Label && piece.is(Punct::Colon) {
            Mark::Colon
        } else if self.role(i - 1) == Role::Label && self.pieces[i - 1].is(Punct::Colon) {
            Mark::Target
        } else if piece.kind == Kind::Word
            && ((fields && next.is_some_and(|n| n.is(Punct::Semicolon)))
                || (self.line.text.starts_with("const ") && next.is_some_and(|n| n.is(Punct::Assign))))
        {
            Mark::Name
        } else {
            return;
        };
        if piece.lines == 0 {
            self.line.marks.push((kind, self.line.text.len(), piece.gap));
        }
    }

    // -- frames

    fn enter(&mut self, i: usize) {
        let piece = &self.pieces[i];
        let began = std::mem::replace(&mut self.state.begins, false);
        match piece.kind {
            Kind::Annotation | Kind::Pragma => {
                self.state.begins = began;
            }
            Kind::Word if piece.is_word(&["else"]) && !self.in_bracket() => {
                let next = self.next_token(i);
                if !next.is_some_and(|n| n.is_word(&["if"]) || n.is(Punct::OpenBrace)) {
                    self.body(false);
                } else {
                    self.state.after_head = next.filter(|n| n.is(Punct::OpenBrace)).map(|_| false);
                }
            }
            Kind::Punct(punct) => self.punct(i, punct),
            _ => {}
        }
    }

    fn next_token(&self, i: usize) -> Option<&Piece<'_>> {
        self.pieces[i + 1..].iter().find(|p| !p.is_comment() && !matches!(p.kind, Kind::Directive | Kind::Annotation | Kind::Pragma))
    }

    fn body(&mut self, of_if: bool) {
        let indent = self.level() + INDENT;
        self.state.frames.push(Frame::Body { indent, of_if });
        self.state.begins = true;
    }

    fn punct(&mut self, i: usize, punct: Punct) {
        match (punct, self.role(i)) {
            (Punct::OpenBrace, Role::Block(braces)) => {
                let of_if = self.state.after_head.take().unwrap_or(false);
                let flat = self.is_flat(i, braces);
                let indent = self.statement_level() + INDENT;
                self.state.frames.push(Frame::Block { indent, braces, of_if, flat });
                self.state.begins = true;
            }
            (Punct::OpenBrace | Punct::OpenParen | Punct::OpenBracket, _) => self.bracket(i),
            (Punct::CloseBrace, Role::Block(_)) => self.end_block(i),
            (Punct::CloseBrace | Punct::CloseParen | Punct::CloseBracket, role) => {
                if self.in_bracket() {
                    self.state.frames.pop();
                }
                if role == Role::Paren(Paren::Head) && !self.in_bracket() {
                    let of_if = self.head_is_if(i);
                    if self.next_token(i).is_some_and(|next| next.is(Punct::OpenBrace)) {
                        self.state.after_head = Some(of_if);
                    } else {
                        self.body(of_if);
                    }
                }
            }
            (Punct::Semicolon, _) if !self.in_bracket() => self.end_statement(i),
            // A label's statement, and an entry of a list of names, begin anew.
            (Punct::Comma, _) if !self.in_bracket() => self.state.begins = true,
            _ => {}
        }
    }

    fn head_is_if(&self, close: usize) -> bool {
        let open = self.roles.partner[close];
        let word = open.and_then(|open| (0..open).rev().find(|j| !self.pieces[*j].is_comment()));
        word.is_some_and(|j| self.pieces[j].is_word(&["if"]))
    }

    fn bracket(&mut self, i: usize) {
        let next = self.pieces.get(i + 1);
        let hanging = next.is_none_or(|next| {
            next.lines > 0
                || next.kind == Kind::Directive
                || (next.is_comment() && self.pieces.get(i + 2).is_none_or(|after| after.lines > 0 || next.kind == Kind::LineComment))
        });
        let close = self.line.indent;
        let aligned = self.column() + usize::from(self.role(i) == Role::List);
        let content = if hanging { close + INDENT } else { aligned };
        self.state.frames.push(Frame::Bracket { content, close, opened: Some(self.line.text.len() - 1) });
    }

    fn end_block(&mut self, i: usize) {
        // Brackets that were left open end with their block.
        let block = self.state.frames.iter().rposition(|frame| matches!(frame, Frame::Block { .. }));
        let of_if = match block {
            Some(at) => {
                let frame = self.state.frames[at];
                self.state.frames.truncate(at);
                matches!(frame, Frame::Block { of_if: true, .. })
            }
            None => {
                self.state.frames.clear();
                false
            }
        };
        let goes_on = self.next_token(i).is_some_and(|next| next.is(Punct::Semicolon));
        let has_else = of_if && self.next_token(i).is_some_and(|next| next.is_word(&["else"]));
        if !goes_on && !has_else {
            self.end_statement(i);
        }
    }

    /// Ends the statement, and those that it is the last part of.
    fn end_statement(&mut self, i: usize) {
        self.state.begins = true;
        let has_else = self.next_token(i).is_some_and(|next| next.is_word(&["else"]));
        while let Some(Frame::Body { of_if, .. }) = self.state.frames.last().copied() {
            self.state.frames.pop();
            if of_if && has_else {
                break;
            }
        }
    }

    /// Whether a block stays on one line: it does where the author wrote it so, it is short, and holds one statement at most.
    fn is_flat(&self, open: usize, braces: Braces) -> bool {
        let Some(close) = self.roles.partner[open].filter(|close| *close > open) else { return false };
        if close == open + 1 {
            return true;
        }
        let inside = &self.pieces[open + 1..=close];
        let written = inside.iter().all(|piece| {
            piece.lines == 0 && !matches!(piece.kind, Kind::LineComment | Kind::Directive | Kind::Pragma) && !piece.text.contains('\n')
        });
        let nested = (open + 1..close).any(|j| matches!(self.role(j), Role::Block(_)) || self.role(j) == Role::Paren(Paren::Head));
        let statements = inside.iter().filter(|piece| piece.is(Punct::Semicolon)).count();
        let few = statements <= 1 || braces == Braces::Property;
        let has_else = self.pieces.get(close + 1).is_some_and(|next| next.is_word(&["else"]))
            || self.pieces[..open].iter().rev().find(|p| !p.is_comment()).is_some_and(|p| p.is_word(&["else"]));
        let length: usize =
            (open + 1..=close).map(|j| self.pieces[j].text.chars().count() + usize::from(spaced(self.pieces, &self.roles.roles, j))).sum();
        written && !nested && few && !has_else && self.column() + length < self.width
    }
}

/// A comment of several lines, moved with its first one.
fn shift(text: &str, from: usize, to: usize) -> String {
    let mut lines = text.split('\n');
    let mut out = lines.next().unwrap_or("").to_string();
    if !text.contains('\n') {
        return out;
    }
    out.truncate(out.trim_end().len());
    for line in lines {
        out.push('\n');
        let line = line.trim_end();
        let blank = line.len() - line.trim_start_matches(' ').len();
        if line.is_empty() {
            continue;
        }
        let moved = if to >= from { blank + (to - from) } else { blank.saturating_sub(from - to) };
        out.extend(std::iter::repeat_n(' ', moved));
        out.push_str(&line[blank..]);
    }
    out
}
