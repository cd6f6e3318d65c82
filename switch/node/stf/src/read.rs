//! Text to [`Script`].

use crate::compare::Pattern;

/// A whole script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// In order.
    pub statements: Vec<Statement>,
}

/// A command and the line it stands in, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Line.
    pub line: u32,
    /// What it says.
    pub command: Command,
}

/// `NAME:VALUE` or `NAME:VALUE/LENGTH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyText {
    /// The field.
    pub name: String,
    /// Its value, as written.
    pub value: String,
    /// Prefix length, as written.
    pub prefix: Option<String>,
}

/// `NAME(ARG:VALUE, ...)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionText {
    /// The action.
    pub name: String,
    /// Arguments by name.
    pub args: Vec<(String, String)>,
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CounterUnit {
    Packets,
    Bytes,
}

/// How a counter is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether `left` stands in this relation to `right`.
    pub fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Command {
    Add {
        table: String,
        priority: Option<i32>,
        keys: Vec<KeyText>,
        action: ActionText,
        label: Option<String>,
    },
    SetDefault {
        table: String,
        action: ActionText,
    },
    RemoveAll,
    Packet {
        port: u32,
        bytes: Vec<u8>,
    },
    Expect {
        port: u32,
        pattern: Pattern,
    },
    NoPacket,
    Wait,
    CheckCounter {
        name: String,
        index: String,
        check: Option<(CounterUnit, Comparison, u64)>,
    },
    /// A command of the BMv2 CLI with its words.
    Direct {
        name: String,
        words: Vec<String>,
    },
}

/// A script that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ReadError {
    /// Line, counted from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

const DIRECT: &[&str] = &[
    "mirroring_add",
    "mirroring_add_mc",
    "mirroring_delete",
    "mirroring_get",
    "mc_mgrp_create",
    "mc_node_create",
    "mc_node_update",
    "mc_node_associate",
    "counter_read",
    "counter_write",
    "register_read",
    "register_write",
    "register_reset",
    "meter_get_rates",
    "meter_set_rates",
    "meter_array_set_rates",
];

/// Reads a script; the error names the first line at fault.
pub fn read(text: &str) -> Result<Script, ReadError> {
    let mut statements = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line_number = i as u32 + 1;
        let content = line.split('#').next().unwrap_or("").trim();
        if content.is_empty() {
            continue;
        }
        let command = command(content).map_err(|message| ReadError { line: line_number, message })?;
        statements.push(Statement { line: line_number, command });
    }
    Ok(Script { statements })
}

fn command(line: &str) -> Result<Command, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word.to_ascii_lowercase().as_str() {
        "packet" => {
            let (port, data) = port_and_data(rest)?;
            let pattern = nibbles(data, false)?;
            let nibbles: Vec<u8> = pattern.nibbles.into_iter().flatten().collect();
            if !nibbles.len().is_multiple_of(2) {
                return Err(format!("a packet of {} hex digits is not a whole number of bytes", nibbles.len()));
            }
            Ok(Command::Packet { port, bytes: nibbles.chunks(2).map(|c| c[0] << 4 | c[1]).collect() })
        }
        "expect" => {
            let (port, data) = port_and_data(rest)?;
            Ok(Command::Expect { port, pattern: nibbles(data, true)? })
        }
        "no_packet" => nothing(rest, Command::NoPacket),
        "wait" => nothing(rest, Command::Wait),
        "remove" if rest.trim().eq_ignore_ascii_case("all") => Ok(Command::RemoveAll),
        "remove" => Err("`remove` takes `all`".to_string()),
        "add" => add(&mut Tokens::new(rest)?),
        "setdefault" => {
            let mut tokens = Tokens::new(rest)?;
            let table = tokens.word("a table")?;
            let action = action(&mut tokens)?;
            tokens.end()?;
            Ok(Command::SetDefault { table, action })
        }
        "check_counter" => check_counter(&mut Tokens::new(rest)?),
        name if DIRECT.contains(&name) || crate::profiles::COMMANDS.contains(&name) => {
            Ok(Command::Direct { name: name.to_string(), words: rest.split_whitespace().map(str::to_string).collect() })
        }
        _ => Err(format!("unknown command `{word}`")),
    }
}

fn nothing(rest: &str, command: Command) -> Result<Command, String> {
    if rest.trim().is_empty() {
        return Ok(command);
    }
    Err(format!("unexpected `{}`", rest.trim()))
}

fn port_and_data(rest: &str) -> Result<(u32, &str), String> {
    let rest = rest.trim();
    let (port, data) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let number: u32 = port.parse().map_err(|_| format!("`{port}` is not a port number"))?;
    if number > 511 {
        return Err(format!("port {number} is out of range: v1model has ports 0 to 511"));
    }
    Ok((number, data))
}

fn nibbles(data: &str, wildcards: bool) -> Result<Pattern, String> {
    let mut pattern = Pattern::any();
    for c in data.chars().filter(|c| !c.is_whitespace()) {
        if pattern.exact {
            return Err("nothing may follow `$`".to_string());
        }
        match c {
            '*' if wildcards => pattern.nibbles.push(None),
            '$' if wildcards => pattern.exact = true,
            c => match c.to_digit(16) {
                Some(d) => pattern.nibbles.push(Some(d as u8)),
                None => return Err(format!("`{c}` is not a hex digit")),
            },
        }
    }
    Ok(pattern)
}

fn add(tokens: &mut Tokens) -> Result<Command, String> {
    let table = tokens.word("a table")?;
    let mut priority = None;
    let is_number = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if tokens.peek().is_some_and(is_number) && tokens.peek_at(1) != Some(":") {
        let text = tokens.word("a priority")?;
        priority = Some(text.parse().map_err(|_| format!("priority {text} is out of range"))?);
    }
    let mut keys = Vec::new();
    while tokens.peek_at(1) == Some(":") {
        let name = tokens.word("a key field")?;
        tokens.expect(":")?;
        let value = tokens.word("a value")?;
        let prefix = if tokens.take("/") { Some(tokens.word("a prefix length")?) } else { None };
        keys.push(KeyText { name, value, prefix });
    }
    let action = action(tokens)?;
    let label = if tokens.take("=") { Some(tokens.word("a name")?) } else { None };
    tokens.end()?;
    Ok(Command::Add { table, priority, keys, action, label })
}

fn action(tokens: &mut Tokens) -> Result<ActionText, String> {
    let name = tokens.word("an action")?;
    tokens.expect("(")?;
    let mut args = Vec::new();
    while !tokens.take(")") {
        if !args.is_empty() {
            tokens.expect(",")?;
        }
        let arg = tokens.word("an argument's name")?;
        tokens.expect(":")?;
        args.push((arg, tokens.word("a value")?));
    }
    Ok(ActionText { name, args })
}

fn check_counter(tokens: &mut Tokens) -> Result<Command, String> {
    let name = tokens.word("a counter")?;
    tokens.expect("(")?;
    let index = tokens.word("an index")?;
    tokens.expect(")")?;
    if tokens.peek().is_none() {
        return Ok(Command::CheckCounter { name, index, check: None });
    }
    let unit = match tokens.word("packets or bytes")?.to_ascii_lowercase().as_str() {
        "packets" => CounterUnit::Packets,
        "bytes" => CounterUnit::Bytes,
        other => return Err(format!("expected packets or bytes, found `{other}`")),
    };
    let mut symbol = String::new();
    while tokens.peek().is_some_and(|t| matches!(t, "=" | "<" | ">" | "!")) {
        symbol.push_str(&tokens.word("a comparison")?);
    }
    let comparison = match symbol.as_str() {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ => return Err(format!("`{symbol}` is not a comparison: use == != < <= > >=")),
    };
    let text = tokens.word("a number")?;
    let number = crate::value::number(&text)?.to_u64().ok_or_else(|| format!("{text} is too large"))?;
    tokens.end()?;
    Ok(Command::CheckCounter { name, index, check: Some((unit, comparison, number)) })
}

/// Words and the punctuation `: , ( ) / = < > !`.
struct Tokens {
    items: Vec<String>,
    next: usize,
}

impl Tokens {
    fn new(text: &str) -> Result<Tokens, String> {
        let mut items = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if first == '"' {
                let close = rest[1..].find('"').ok_or("a `\"` is not closed")?;
                items.push(rest[1..1 + close].to_string());
                close + 2
            } else if is_word(first) {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                items.push(rest[..length].to_string());
                length
            } else if ":,()/=<>!".contains(first) {
                items.push(first.to_string());
                first.len_utf8()
            } else {
                return Err(format!("unexpected `{first}`"));
            };
            rest = rest[length..].trim_start();
        }
        Ok(Tokens { items, next: 0 })
    }

    fn peek(&self) -> Option<&str> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<&str> {
        self.items.get(self.next + ahead).map(String::as_str)
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        let item = self.items.get(self.next).ok_or_else(|| format!("expected {what}, the line ends"))?;
        self.next += 1;
        Ok(item.clone())
    }

    fn take(&mut self, item: &str) -> bool {
        let found = self.peek() == Some(item);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, item: &str) -> Result<(), String> {
        if self.take(item) {
            return Ok(());
        }
        Err(format!("expected `{item}`, {}", self.peek().map_or("the line ends".into(), |t| format!("found `{t}`"))))
    }

    fn end(&self) -> Result<(), String> {
        self.peek().map_or(Ok(()), |t| Err(format!("unexpected `{t}`")))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_$.*[]-&".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Command {
        read(text).unwrap().statements.remove(0).command
    }

    #[test]
    fn adds() {
        let Command::Add { table, priority, keys, action, label } = one("add t 10 h.a:0x**01 e$0.b : 10.0/8 act(x:1, y : 0b10) = A # why")
        else {
            panic!()
        };
        assert_eq!((table.as_str(), priority, label.as_deref()), ("t", Some(10), Some("A")));
        assert_eq!(keys[0], KeyText { name: "h.a".into(), value: "0x**01".into(), prefix: None });
        assert_eq!(keys[1].prefix.as_deref(), Some("8"));
        assert_eq!(action.args, [("x".into(), "1".into()), ("y".into(), "0b10".into())]);
    }

    #[test]
    fn packets() {
        assert_eq!(one("packet 3 01 02ff"), Command::Packet { port: 3, bytes: vec![1, 2, 255] });
        let Command::Expect { port: 0, pattern } = one("EXPECT 0 0* 1$") else { panic!() };
        assert_eq!((pattern.nibbles, pattern.exact), (vec![Some(0), None, Some(1)], true));
        assert_eq!(one("expect 5"), Command::Expect { port: 5, pattern: Pattern::any() });
    }

    #[test]
    fn counters() {
        let Command::CheckCounter { check, .. } = one("check_counter c(10) packets >= 0x2") else { panic!() };
        assert_eq!(check, Some((CounterUnit::Packets, Comparison::GreaterOrEqual, 2)));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line, part) in [
            ("\npacket 1 012", 2, "whole number of bytes"),
            ("packet 1 0g", 1, "`g`"),
            ("packet 512 00", 1, "512"),
            ("expect 1 00$00", 1, "follow `$`"),
            ("add t k:1", 1, "an action"),
            ("add t act(x)", 1, "expected `:`"),
            ("setdefault t act() extra", 1, "unexpected `extra`"),
            ("frobnicate", 1, "frobnicate"),
            ("check_counter c(1) packets => 2", 1, "=>"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.message.contains(part), "{text}: {}", error.message);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "(add|packet|expect|check_counter|setdefault|mc_node_create)? ?[ -~\n]{0,60}") {
            let _ = read(&text);
        }
    }
}
