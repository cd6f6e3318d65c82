//! Matches and actions as the control plane wrote them, in as few bytes as can be: a table may hold a
//! million, and they are only read back.

use crate::control::{ActionCall, KeyMatch, TableAction};
use crate::value::Value;
use crate::ActionId;

/// A number of any size: seven bits a byte, the last below 128.
fn put(out: &mut Vec<u8>, mut n: u32) {
    while n >= 128 {
        out.push(n as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
}

fn put_value(out: &mut Vec<u8>, v: &Value) {
    put(out, v.as_bytes().len() as u32);
    out.extend_from_slice(v.as_bytes());
}

/// Reads what was written; nothing else comes here, so the end is not an error of its own.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> u32 {
        let mut n = 0;
        for shift in (0..32).step_by(7) {
            let Some((&byte, rest)) = self.0.split_first() else {
                break;
            };
            self.0 = rest;
            n |= u32::from(byte & 127) << shift;
            if byte < 128 {
                break;
            }
        }
        n
    }

    fn value(&mut self) -> Value {
        let n = (self.number() as usize).min(self.0.len());
        let (bytes, rest) = self.0.split_at(n);
        self.0 = rest;
        Value::from_be_bytes(bytes)
    }

    fn call(&mut self) -> ActionCall {
        let action = ActionId(self.number());
        let n = self.number();
        ActionCall { action, args: (0..n).map(|_| self.value()).collect() }
    }
}

/// The match of an entry.
pub fn key(fields: &[KeyMatch]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(32);
    for field in fields {
        match field {
            KeyMatch::Any => put(&mut out, 0),
            KeyMatch::Valid(v) => put(&mut out, 1 + u32::from(*v)),
            KeyMatch::Exact(v) => {
                put(&mut out, 3);
                put_value(&mut out, v);
            }
            KeyMatch::Ternary { value, mask } => {
                put(&mut out, 4);
                put_value(&mut out, value);
                put_value(&mut out, mask);
            }
            KeyMatch::Range { low, high } => {
                put(&mut out, 5);
                put_value(&mut out, low);
                put_value(&mut out, high);
            }
            KeyMatch::Lpm { value, prefix_len } => {
                put(&mut out, 6);
                put(&mut out, *prefix_len);
                put_value(&mut out, value);
            }
        }
    }
    out.into_boxed_slice()
}

/// The match that [`key`] was given.
pub fn key_of(coded: &[u8]) -> Vec<KeyMatch> {
    let mut r = Reader(coded);
    let mut out = Vec::new();
    while !r.0.is_empty() {
        out.push(match r.number() {
            0 => KeyMatch::Any,
            1 => KeyMatch::Valid(false),
            2 => KeyMatch::Valid(true),
            3 => KeyMatch::Exact(r.value()),
            4 => KeyMatch::Ternary { value: r.value(), mask: r.value() },
            5 => KeyMatch::Range { low: r.value(), high: r.value() },
            _ => {
                let prefix_len = r.number();
                let value = r.value();
                KeyMatch::Lpm { value, prefix_len }
            }
        });
    }
    out
}

fn put_call(out: &mut Vec<u8>, call: &ActionCall) {
    put(out, call.action.0);
    put(out, call.args.len() as u32);
    for v in &call.args {
        put_value(out, v);
    }
}

/// The action of an entry; equal actions give equal bytes.
pub fn action(action: &TableAction) -> Box<[u8]> {
    let mut out = Vec::with_capacity(32);
    match action {
        TableAction::Call(call) => {
            put(&mut out, 0);
            put_call(&mut out, call);
        }
        TableAction::Member(m) => {
            put(&mut out, 1);
            put(&mut out, *m);
        }
        TableAction::Group(g) => {
            put(&mut out, 2);
            put(&mut out, *g);
        }
        TableAction::OneShot(choices) => {
            put(&mut out, 3);
            put(&mut out, choices.len() as u32);
            for (call, weight) in choices {
                put_call(&mut out, call);
                put(&mut out, *weight);
            }
        }
    }
    out.into_boxed_slice()
}

/// The action that [`action`] was given.
pub fn action_of(coded: &[u8]) -> TableAction {
    let mut r = Reader(coded);
    match r.number() {
        0 => TableAction::Call(r.call()),
        1 => TableAction::Member(r.number()),
        2 => TableAction::Group(r.number()),
        _ => {
            let n = r.number();
            TableAction::OneShot((0..n).map(|_| (r.call(), r.number())).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|b| Value::from_be_bytes(&b))
    }

    fn field() -> impl Strategy<Value = KeyMatch> {
        prop_oneof![
            Just(KeyMatch::Any),
            any::<bool>().prop_map(KeyMatch::Valid),
            value().prop_map(KeyMatch::Exact),
            (value(), value()).prop_map(|(value, mask)| KeyMatch::Ternary { value, mask }),
            (value(), value()).prop_map(|(low, high)| KeyMatch::Range { low, high }),
            (value(), any::<u32>()).prop_map(|(value, prefix_len)| KeyMatch::Lpm { value, prefix_len }),
        ]
    }

    fn call() -> impl Strategy<Value = ActionCall> {
        let args = prop::collection::vec(value(), 0..4);
        (any::<u32>(), args).prop_map(|(id, args)| ActionCall { action: ActionId(id), args })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            fields in prop::collection::vec(field(), 0..6),
            calls in prop::collection::vec((call(), any::<u32>()), 1..4),
            id in any::<u32>(),
        ) {
            prop_assert_eq!(key_of(&key(&fields)), fields);
            let actions = [
                TableAction::Call(calls[0].0.clone()),
                TableAction::Member(id),
                TableAction::Group(id),
                TableAction::OneShot(calls),
            ];
            for a in actions {
                prop_assert_eq!(action_of(&action(&a)), a);
            }
        }
    }
}
