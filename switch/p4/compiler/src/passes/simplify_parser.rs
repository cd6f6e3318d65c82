//! Takes out parser states that are never reached or do nothing, and joins chains of states.
//!
//! ```text
//! $entry { } -> start             start { extract(ethernet) } -> select(..)
//! start { } -> parse_ethernet =>
//! parse_ethernet { extract(ethernet) } -> select(..)
//! ```

use std::collections::HashMap;

use crate::ir::{Case, Parser, State, StateId, Target, Transition};

/// Runs the pass; the first state ends up with the name `start`.
pub fn run(parser: &mut Parser) {
    if parser.states.is_empty() {
        return;
    }
    skip_empty(parser);
    join_chains(parser);
    drop_unreached(parser);
    let taken = parser.states.iter().skip(1).any(|s| s.name == "start");
    if taken && let Some(s) = parser.states.iter_mut().skip(1).find(|s| s.name == "start") {
        s.name = "start_0".into();
    }
    if let Some(first) = parser.states.first_mut() {
        first.name = "start".into();
    }
}

fn targets(s: &mut State) -> Vec<&mut Target> {
    match &mut s.next {
        Transition::Goto(t) => vec![t],
        Transition::Select(_, cases) => cases
            .iter_mut()
            .map(|c| match c {
                Case::Matches(_, t) | Case::ValueSet(_, t) => t,
            })
            .collect(),
    }
}

/// Sends transitions to an empty state straight to where that one goes.
fn skip_empty(parser: &mut Parser) {
    let next: Vec<Option<Target>> = parser
        .states
        .iter()
        .map(|s| match (&s.next, s.body.is_empty()) {
            (Transition::Goto(t), true) => Some(*t),
            _ => None,
        })
        .collect();
    let resolve = |mut t: Target| {
        // A cycle of empty states loops for ever in the source, too; stop after one round.
        for _ in 0..next.len() {
            match t {
                Target::State(s) => match next[s.0] {
                    Some(n) => t = n,
                    None => return t,
                },
                _ => return t,
            }
        }
        t
    };
    for s in &mut parser.states {
        for t in targets(s) {
            *t = resolve(*t);
        }
    }
}

/// Joins a state with its only successor when that has no other predecessor.
fn join_chains(parser: &mut Parser) {
    loop {
        let mut predecessors: HashMap<StateId, usize> = HashMap::new();
        for i in reached(parser) {
            for t in targets(&mut parser.states[i.0]) {
                if let Target::State(s) = t {
                    *predecessors.entry(*s).or_default() += 1;
                }
            }
        }
        let joined = reached(parser).into_iter().find_map(|i| match parser.states[i.0].next {
            Transition::Goto(Target::State(j)) if j != i && j.0 != 0 && predecessors.get(&j) == Some(&1) => Some((i, j)),
            _ => None,
        });
        let Some((i, j)) = joined else { return };
        let second = std::mem::replace(
            &mut parser.states[j.0],
            State { name: String::new(), body: Vec::new(), next: Transition::Goto(Target::Reject) },
        );
        let first = &mut parser.states[i.0];
        first.body.extend(second.body);
        first.next = second.next;
    }
}

fn reached(parser: &mut Parser) -> Vec<StateId> {
    let mut seen = vec![false; parser.states.len()];
    let mut work = vec![StateId(0)];
    while let Some(s) = work.pop() {
        if std::mem::replace(&mut seen[s.0], true) {
            continue;
        }
        for t in targets(&mut parser.states[s.0]) {
            if let Target::State(n) = t {
                work.push(*n);
            }
        }
    }
    (0..seen.len()).filter(|i| seen[*i]).map(StateId).collect()
}

fn drop_unreached(parser: &mut Parser) {
    let kept = reached(parser);
    let index: HashMap<StateId, StateId> = kept.iter().enumerate().map(|(new, old)| (*old, StateId(new))).collect();
    let mut states: Vec<State> = kept.iter().map(|i| parser.states[i.0].clone()).collect();
    for s in &mut states {
        for t in targets(s) {
            if let Target::State(old) = t {
                *t = index.get(old).map_or(Target::Reject, |n| Target::State(*n));
            }
        }
    }
    parser.states = states;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Expr, HeaderId, HeaderRef, Match, Stmt};
    use crate::types::Type;
    use fairlane_syntax::ast::Span;

    fn state(name: &str, extracts: Option<usize>, next: Transition) -> State {
        let body = extracts.map(|h| Stmt::Extract(HeaderRef::Instance(HeaderId(h)), None, Span::default())).into_iter().collect();
        State { name: name.into(), body, next }
    }

    fn shape(p: &Parser) -> Vec<String> {
        p.states.iter().map(|s| format!("{} {} {:?}", s.name, s.body.len(), s.next)).collect()
    }

    #[test]
    fn chains_are_joined_and_empty_states_skipped() {
        let to = |i| Transition::Goto(Target::State(StateId(i)));
        let select = Transition::Select(
            vec![Expr::constant(1, Type::bit(8))],
            vec![
                Case::Matches(vec![Match::Exact(1.into())], Target::State(StateId(3))),
                Case::Matches(vec![Match::Any], Target::State(StateId(4))),
            ],
        );
        let mut p = Parser {
            name: "p".into(),
            states: vec![
                state("$entry", None, to(1)),
                state("start", Some(0), to(2)),
                state("middle", Some(1), select.clone()),
                state("empty", None, to(4)),
                state("last", Some(2), Transition::Goto(Target::Accept)),
                state("lost", Some(3), to(4)),
            ],
        };
        run(&mut p);
        let both = Transition::Select(
            vec![Expr::constant(1, Type::bit(8))],
            vec![
                Case::Matches(vec![Match::Exact(1.into())], Target::State(StateId(1))),
                Case::Matches(vec![Match::Any], Target::State(StateId(1))),
            ],
        );
        let expected = Parser {
            name: "p".into(),
            states: vec![
                State {
                    name: "start".into(),
                    body: [0, 1].map(|h| Stmt::Extract(HeaderRef::Instance(HeaderId(h)), None, Span::default())).into(),
                    next: both,
                },
                state("last", Some(2), Transition::Goto(Target::Accept)),
            ],
        };
        assert_eq!(shape(&p), shape(&expected));
        assert_eq!(p, expected);
    }

    #[test]
    fn loops_stay() {
        let to = |i| Transition::Goto(Target::State(StateId(i)));
        let mut p =
            Parser { name: "p".into(), states: vec![state("start", None, to(1)), state("a", Some(0), to(2)), state("b", None, to(1))] };
        run(&mut p);
        assert_eq!(shape(&p), ["start 0 Goto(State(StateId(1)))", "a 1 Goto(State(StateId(1)))"]);
        let mut empty = Parser { name: "p".into(), states: vec![state("start", None, to(1)), state("a", None, to(0))] };
        run(&mut empty);
        assert!(!empty.states.is_empty());
    }
}
