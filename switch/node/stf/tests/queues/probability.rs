//! What PIE's and PI2's comparisons share: a program with its probability in a register, beside real numbers.

use std::sync::Arc;

use fairlane_device::pipeline::Program;
use fairlane_device::{Nanos, PortId};

use crate::{compiled, loads, Random, Totals, SERVICE, TOS};

#[derive(Default)]
pub struct Comparison {
    pub p4: Totals,
    /// Decisions that differ, each with its random number between both probabilities.
    pub straddled: usize,
    /// Largest relative error of the probability.
    pub error: f64,
}

impl Comparison {
    /// Counts what was sent, each frame with its number in bytes 60 to 67. marked: the real numbers' marks, by number.
    pub fn settle(&mut self, sent: &[(PortId, Nanos, Vec<u8>)], arrivals: &[Nanos], marked: &[bool]) {
        let mut waited_s = 0.0;
        for (_, at, frame) in sent {
            let number = u64::from_be_bytes(frame[60..68].try_into().unwrap()) as usize;
            assert_eq!(frame[TOS] & 3 == 3, marked[number], "packet {number}");
            waited_s += (at - SERVICE - arrivals[number]) as f64 / 1e9;
        }
        self.p4.marks = marked.iter().filter(|&&m| m).count();
        self.p4.mean_wait_s = waited_s / sent.len() as f64;
    }
}

/// Runs both at each load, with and without ECN, prints a table, and fails where they differ. known: real numbers with a timer.
pub fn hold(
    scheme: &[&str],
    seed: u64,
    known: impl Fn(&[Nanos], bool, &mut Random) -> Totals,
    in_p4: impl Fn(&Arc<Program>, &[Nanos], bool, u64) -> Comparison,
) {
    let program = compiled(scheme);
    let mut random = Random(seed);
    let cases = loads(&mut random);
    println!(
        "{:14} {:6} {:>10} {:>9} {:>10} {:>9} {:>12} {:>11} {:>9} {:>9}",
        "load", "ecn", "drops real", "drops P4", "marks real", "marks P4", "wait real ms", "wait P4 ms", "straddled", "error"
    );
    let mut failures = Vec::new();
    for (name, arrivals) in &cases {
        // The switch's clock counts microseconds.
        let arrivals: Vec<Nanos> = arrivals.iter().map(|at| at / 1000 * 1000).collect();
        for ecn in [false, true] {
            let (known, found) = (known(&arrivals, ecn, &mut random), in_p4(&program, &arrivals, ecn, seed));
            let p4 = &found.p4;
            println!(
                "{name:14} {ecn:6} {:10} {:9} {:10} {:9} {:12.4} {:11.4} {:9} {:9.1e}",
                known.drops,
                p4.drops,
                known.marks,
                p4.marks,
                1e3 * known.mean_wait_s,
                1e3 * p4.mean_wait_s,
                found.straddled,
                found.error
            );
            if found.error > 1e-3 {
                failures.push(format!("{name}: an error of the probability of {:e}", found.error));
            }
            if found.straddled > 5 {
                failures.push(format!("{name}: {} decisions differ", found.straddled));
            }
            let (count, expected) = ((p4.drops + p4.marks) as f64, (known.drops + known.marks) as f64);
            // The text's delay is of the queue at an update, the program's of the last packet that left.
            if (count - expected).abs() > (0.07 * expected).max(30.0) {
                failures.push(format!("{name}: {count} drops and marks, by the formula {expected}"));
            }
            if (p4.mean_wait_s - known.mean_wait_s).abs() > (0.07 * known.mean_wait_s).max(10e-6) {
                failures.push(format!("{name}: mean wait {} s, by the formula {} s", p4.mean_wait_s, known.mean_wait_s));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
