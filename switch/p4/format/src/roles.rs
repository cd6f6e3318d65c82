//! What each piece is for, as far as the layout depends on it: which brace holds statements, which `<` opens type arguments, which `-` has one
//! operand. It goes by the tokens alone, because macros hide the grammar. Where it errs, a space or a line end is another, never a token.

use fairlane_syntax::token::Punct;

use crate::pieces::{Kind, Piece};

/// The role of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// `{` and `}` around statements or declarations.
    Block(Braces),
    /// `{` and `}` around values.
    List,
    /// `(` or `)`
    Paren(Paren),
    /// `<` and `>` around types.
    Angle,
    Unary,
    Binary,
    /// `..`, `:` of a slice
    Tight,
    /// The colon of a label: of a key, a case, an entry.
    Label,
}

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Braces {
    /// Statements or declarations.
    Statements,
    /// The body of a table's property, `key = { .. }`.
    Property,
    /// Fields of a header or struct.
    Fields,
    /// Names between commas: `enum`, `error`, `match_kind`.
    Names,
}

/// What a parenthesis is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paren {
    /// Of `if`, `switch`, `for`.
    Head,
    /// Arguments or parameters.
    Call,
    /// Around an expression, a cast's type, a tuple.
    Expression,
}

/// The roles of the pieces, and for each bracket the one that it belongs to.
#[derive(Debug)]
pub(crate) struct Roles {
    pub roles: Vec<Role>,
    pub partner: Vec<Option<usize>>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    at: usize,
    closes: Punct,
    role: Role,
    /// `?` that wait for their `:`.
    questions: usize,
}

struct Finder<'a> {
    pieces: &'a [Piece<'a>],
    out: Roles,
    open: Vec<Open>,
    saved: Vec<Vec<Open>>,
    /// The tokens before, comments and directives left out.
    before: Option<usize>,
    /// The first word of the statement.
    statement: Option<usize>,
    /// `?` outside of brackets.
    questions: usize,
}

/// Finds the roles.
pub(crate) fn roles(pieces: &[Piece]) -> Roles {
    let out = Roles { roles: vec![Role::Plain; pieces.len()], partner: vec![None; pieces.len()] };
    let mut finder = Finder { pieces, out, open: Vec::new(), saved: Vec::new(), before: None, statement: None, questions: 0 };
    for (i, piece) in pieces.iter().enumerate() {
        match piece.kind {
            Kind::LineComment | Kind::BlockComment | Kind::Annotation | Kind::Pragma => continue,
            Kind::Directive => {
                finder.directive(&piece.text);
                continue;
            }
            Kind::Punct(punct) => finder.punct(i, punct),
            _ => {}
        }
        if finder.statement.is_none() && piece.kind == Kind::Word {
            finder.statement = Some(i);
        }
        finder.before = Some(i);
    }
    finder.out
}

/// What a directive does to the groups around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Opens,
    Another,
    Closes,
}

/// The group that a line of the preprocessor opens, goes on with, or closes.
pub(crate) fn group(directive: &str) -> Option<Group> {
    let rest = directive.trim_start().strip_prefix('#')?.trim_start();
    let name: &str = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
    match name {
        "if" | "ifdef" | "ifndef" => Some(Group::Opens),
        "else" | "elif" | "elifdef" | "elifndef" => Some(Group::Another),
        "endif" => Some(Group::Closes),
        _ => None,
    }
}

impl Finder<'_> {
    /// Each branch of a conditional begins with what is open before it.
    fn directive(&mut self, text: &str) {
        match group(text) {
            Some(Group::Opens) => self.saved.push(self.open.clone()),
            Some(Group::Another) => self.open = self.saved.last().cloned().unwrap_or_default(),
            Some(Group::Closes) => {
                self.saved.pop();
            }
            None => {}
        }
    }

    fn punct(&mut self, i: usize, punct: Punct) {
        let before = self.before.map(|b| &self.pieces[b]);
        let role = match punct {
            Punct::OpenParen => {
                let role = Role::Paren(self.paren(before));
                self.opens(i, Punct::CloseParen, role)
            }
            Punct::OpenBracket => self.opens(i, Punct::CloseBracket, Role::Plain),
            Punct::OpenBrace => {
                let role = self.brace(i);
                self.statement = None;
                self.opens(i, Punct::CloseBrace, role)
            }
            Punct::CloseParen | Punct::CloseBracket | Punct::CloseBrace => self.closes(i, punct),
            Punct::Less => match self.type_arguments(i) {
                true => self.opens(i, Punct::Greater, Role::Angle),
                false => Role::Binary,
            },
            Punct::Greater if self.open.last().is_some_and(|open| open.role == Role::Angle) => self.closes(i, punct),
            Punct::Question => {
                *self.open.last_mut().map_or(&mut self.questions, |open| &mut open.questions) += 1;
                Role::Binary
            }
            Punct::Colon => self.colon(),
            Punct::Semicolon => {
                self.statement = None;
                self.questions = 0;
                Role::Plain
            }
            Punct::Minus | Punct::Plus if self.is_prefix() => Role::Unary,
            Punct::Not | Punct::Tilde => Role::Unary,
            Punct::Range => Role::Tight,
            Punct::Comma | Punct::Dot | Punct::At | Punct::Hash | Punct::HashHash | Punct::Dots | Punct::InvalidHeader => Role::Plain,
            _ => Role::Binary,
        };
        self.out.roles[i] = role;
    }

    fn opens(&mut self, at: usize, closes: Punct, role: Role) -> Role {
        self.open.push(Open { at, closes, role, questions: 0 });
        role
    }

    /// Closes the nearest bracket of the kind, and those left open inside it.
    fn closes(&mut self, i: usize, punct: Punct) -> Role {
        let Some(found) = self.open.iter().rposition(|open| open.closes == punct) else {
            self.statement = None;
            return match punct {
                Punct::CloseBrace => Role::Block(Braces::Statements),
                Punct::CloseParen => Role::Paren(Paren::Call),
                _ => Role::Plain,
            };
        };
        let open = self.open[found];
        self.open.truncate(found);
        self.out.partner[i] = Some(open.at);
        self.out.partner[open.at] = Some(i);
        if matches!(open.role, Role::Block(_)) {
            self.statement = None;
        }
        open.role
    }

    fn paren(&self, before: Option<&Piece>) -> Paren {
        let Some(before) = before else { return Paren::Expression };
        let b = self.before.unwrap_or(0);
        match before.kind {
            Kind::Word if before.is_word(&["if", "switch", "for"]) => Paren::Head,
            Kind::Word if before.is_word(&["return", "in", "else", "const"]) => Paren::Expression,
            Kind::Word | Kind::Stray => Paren::Call,
            Kind::Punct(Punct::CloseParen) => match self.out.roles[b] {
                Role::Paren(Paren::Call) => Paren::Call,
                _ => Paren::Expression,
            },
            Kind::Punct(Punct::Greater) if self.out.roles[b] == Role::Angle => Paren::Call,
            Kind::Punct(Punct::CloseBracket) => Paren::Call,
            _ => Paren::Expression,
        }
    }

    fn brace(&self, i: usize) -> Role {
        let Some(b) = self.before else { return Role::Block(Braces::Statements) };
        let before = &self.pieces[b];
        let statements = Role::Block(self.contents(i));
        if self.open.last().is_some_and(|open| !matches!(open.role, Role::Block(_))) {
            return Role::List;
        }
        match before.kind {
            Kind::Punct(Punct::Assign) => {
                let property = (0..b).rev().find(|j| !self.pieces[*j].is_comment());
                if property.is_some_and(|j| self.pieces[j].is_word(&["key", "actions", "entries"])) {
                    Role::Block(Braces::Property)
                } else if self.has_statements(i) {
                    statements
                } else {
                    Role::List
                }
            }
            Kind::Punct(Punct::CloseParen) if self.out.roles[b] == Role::Paren(Paren::Expression) => Role::List,
            Kind::Punct(Punct::Colon) if self.out.roles[b] != Role::Label => Role::List,
            Kind::Punct(Punct::Greater) if self.out.roles[b] == Role::Angle => statements,
            Kind::Punct(Punct::CloseParen | Punct::Semicolon | Punct::CloseBrace | Punct::OpenBrace | Punct::Colon) => statements,
            Kind::Punct(_) => Role::List,
            Kind::Word if before.is_word(&["return", "in"]) => Role::List,
            _ => statements,
        }
    }

    /// By the word that begins the statement.
    fn contents(&self, _open: usize) -> Braces {
        match self.statement.map(|s| &self.pieces[s]) {
            Some(word) if word.is_word(&["header", "struct", "header_union"]) => Braces::Fields,
            Some(word) if word.is_word(&["enum", "error", "match_kind"]) => Braces::Names,
            _ => Braces::Statements,
        }
    }

    /// Whether a `;` stands between the brace and its partner, in no other bracket.
    fn has_statements(&self, open: usize) -> bool {
        let mut depth = 0usize;
        for piece in &self.pieces[open + 1..] {
            match piece.kind {
                Kind::Punct(Punct::OpenBrace | Punct::OpenParen) => depth += 1,
                Kind::Punct(Punct::CloseBrace | Punct::CloseParen) if depth == 0 => return false,
                Kind::Punct(Punct::CloseBrace | Punct::CloseParen) => depth -= 1,
                Kind::Punct(Punct::Semicolon) if depth == 0 => return true,
                _ => {}
            }
        }
        false
    }

    /// Whether `<` opens a list of types: what is between it and its `>` must be able to stand there, and no blank before it, unless the word
    /// before it is a type that has arguments.
    fn type_arguments(&self, i: usize) -> bool {
        let Some(b) = self.before else { return false };
        let before = &self.pieces[b];
        // No comparison begins a statement.
        let sure = self.statement == Some(b) || before.is_word(&["bit", "int", "varbit", "tuple", "list", "value_set"]);
        let spaced = self.pieces[i].lines > 0 || self.pieces[i].gap > 0;
        if before.kind != Kind::Word || (spaced && !sure) {
            return false;
        }
        let (mut depth, mut parens) = (1usize, 0usize);
        for piece in self.pieces[i + 1..].iter().take(400) {
            match piece.kind {
                Kind::Punct(Punct::Less) if parens == 0 => depth += 1,
                Kind::Punct(Punct::Greater) if parens == 0 => {
                    depth -= 1;
                    if depth == 0 {
                        return true;
                    }
                }
                Kind::Punct(Punct::OpenParen) => parens += 1,
                Kind::Punct(Punct::CloseParen) if parens == 0 => return false,
                Kind::Punct(Punct::CloseParen) => parens -= 1,
                Kind::Punct(Punct::Semicolon | Punct::OpenBrace | Punct::CloseBrace | Punct::Assign) => return false,
                Kind::Punct(Punct::AndAnd | Punct::OrOr | Punct::Question) if parens == 0 => return false,
                Kind::Directive => return false,
                _ => {}
            }
        }
        false
    }

    fn colon(&mut self) -> Role {
        let (questions, bracket) = match self.open.last_mut() {
            Some(open) => (&mut open.questions, Some(open.closes)),
            None => (&mut self.questions, None),
        };
        if *questions > 0 {
            *questions -= 1;
            return Role::Binary;
        }
        match bracket {
            Some(Punct::CloseBracket) => Role::Tight,
            _ => Role::Label,
        }
    }

    /// Whether an operator that stands here has one operand.
    fn is_prefix(&self) -> bool {
        let Some(b) = self.before else { return true };
        let before = &self.pieces[b];
        match before.kind {
            Kind::Word => before.is_word(&["return", "in", "else"]),
            Kind::Punct(Punct::CloseParen) => self.out.roles[b] == Role::Paren(Paren::Expression) && self.is_cast(b),
            Kind::Punct(Punct::CloseBracket | Punct::CloseBrace | Punct::InvalidHeader) => false,
            Kind::Punct(Punct::Greater) => self.out.roles[b] != Role::Angle,
            Kind::Punct(_) => true,
            _ => false,
        }
    }

    /// Whether the parentheses that end here hold a type of the language.
    fn is_cast(&self, close: usize) -> bool {
        let types = ["bit", "int", "bool", "varbit", "error"];
        self.out.partner[close].and_then(|open| self.pieces.get(open + 1)).is_some_and(|first| first.is_word(&types))
    }
}

/// Whether a blank stands between two pieces of one line.
pub(crate) fn spaced(pieces: &[Piece], roles: &[Role], i: usize) -> bool {
    let Some(a) = i.checked_sub(1) else { return false };
    let (before, after) = (&pieces[a], &pieces[i]);
    let written = after.lines > 0 || after.gap > 0;
    let joins = |p: &Piece, puncts: &[Punct]| puncts.iter().any(|punct| p.is(*punct));
    if before.is_comment() || after.is_comment() {
        return written || before.kind == Kind::LineComment;
    }
    if joins(after, &[Punct::Semicolon, Punct::Comma, Punct::CloseParen, Punct::CloseBracket]) {
        return false;
    }
    if joins(before, &[Punct::OpenParen, Punct::OpenBracket, Punct::At]) {
        return false;
    }
    if before.kind == Kind::Annotation || after.kind == Kind::Annotation {
        return true;
    }
    // Of `>>`, and of lists of types that end together.
    if before.is(Punct::Greater) && joins(after, &[Punct::Greater, Punct::GreaterEq]) {
        return written;
    }
    if would_join(before, after) {
        return true;
    }
    match (roles[a], roles[i]) {
        (Role::Unary, _) => false,
        (Role::Angle, _) if before.is(Punct::Less) => false,
        (_, Role::Angle) => false,
        (Role::Angle, _) if joins(after, &[Punct::OpenParen, Punct::OpenBracket, Punct::Dot]) => false,
        (Role::Tight, _) | (_, Role::Tight) => (before.is(Punct::Range) || after.is(Punct::Range)) && written,
        (_, Role::Label) => false,
        (Role::Binary | Role::Label | Role::List, _) if !before.is(Punct::CloseBrace) => {
            !after.is(Punct::CloseBrace) || written || roles[i] != Role::List
        }
        (_, Role::Binary) => true,
        (_, Role::Unary) => true,
        _ if before.is(Punct::Dot) => false,
        _ if after.is(Punct::Dot) => joins(before, &[Punct::Comma]) || (before.is_word(&["return", "in", "transition"]) && written),
        _ if after.is(Punct::OpenBracket) => joins(before, &[Punct::Comma]) || (before.kind == Kind::Word && before.is_word(&["return"])),
        (Role::Paren(Paren::Expression), _) if before.is(Punct::CloseParen) && !after.is(Punct::CloseBrace) => written,
        (_, Role::Paren(Paren::Call)) if after.is(Punct::OpenParen) => false,
        _ if [before, after].iter().any(|p| joins(p, &[Punct::Hash, Punct::HashHash]) || p.kind == Kind::Stray) => written,
        _ => true,
    }
}

/// Whether the lexer would take parts of both for another token.
fn would_join(before: &Piece, after: &Piece) -> bool {
    let (Kind::Punct(a), Kind::Punct(b)) = (before.kind, after.kind) else { return false };
    let text = format!("{}{}", a.text(), b.text());
    text.starts_with("//")
        || text.starts_with("/*")
        || Punct::ALL.iter().any(|p| p.text().len() > a.text().len() && text.starts_with(p.text()))
}
