//! The protocol of `fairlane-replay`, and action profiles in scripts.

use std::path::Path;
use std::sync::Arc;

use fairlane_pipeline::Program;
use fairlane_stf::{replay::replay, Player};

fn player(name: &str, setup: &str) -> Player {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../tests/p4/{name}/{name}.p4"));
    let outcome = fairlane_compiler::compile(&source, &fairlane_compiler::Options::default());
    let json = outcome.json.unwrap_or_else(|| panic!("{}", outcome.rendered)).to_string();
    let mut player = Player::new(Arc::new(Program::from_json(&json).unwrap_or_else(|e| panic!("{e}")))).expect("memory");
    let script = fairlane_stf::read(setup).unwrap_or_else(|e| panic!("{e}"));
    for statement in &script.statements {
        player.play(statement.line, &statement.command).unwrap_or_else(|e| panic!("line {}: {e}", statement.line));
    }
    player
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// A batch of packets with its length before it.
fn batch(packets: &[(u32, &[u8])]) -> Vec<u8> {
    let body: Vec<u8> = packets.iter().flat_map(|(port, data)| [words(&[*port, data.len() as u32]), data.to_vec()].concat()).collect();
    [words(&[body.len() as u32]), body].concat()
}

#[test]
fn answers_batches_and_says_its_state() {
    let setup = "mirroring_add 3 4\n";
    let mut player = player("clone_recirculate", setup);
    let input = [batch(&[(1, &[1, 0, 0xaa]), (1, &[]), (1, &[9, 0, 0xbb])]), batch(&[]), words(&[0])].concat();
    let mut output = Vec::new();
    replay(&mut player, &mut input.as_slice(), &mut output).unwrap();
    // The first is cloned to port 4; the second is too short and dropped.
    let first = [words(&[2]), words(&[2, 3]), vec![1, 0, 0xaa], words(&[4, 3]), vec![1, 0xc7, 0xaa]].concat();
    let last = [words(&[1]), words(&[2, 3]), vec![9, 0, 0xbb]].concat();
    let answer = [first, words(&[0]), last].concat();
    assert_eq!(output[..4], words(&[answer.len() as u32]));
    assert_eq!(output[4..4 + answer.len()], answer);
    // Two questions for the state; the program has no registers or counters.
    assert_eq!(output[4 + answer.len()..], words(&[0, 0]));
}

#[test]
fn says_registers_and_counters() {
    let mut player = player("firewall", "");
    let mut output = Vec::new();
    replay(&mut player, &mut words(&[0]).as_slice(), &mut output).unwrap();
    let text = String::from_utf8(output[4..].to_vec()).unwrap();
    assert!(text.lines().any(|l| l.starts_with("register SwitchIngress.first 0x0 0x0 ")), "{}", &text[..200.min(text.len())]);
}

#[test]
fn malformed_batches_are_errors() {
    for input in [vec![1, 0], words(&[8, 1]), words(&[4, 1]), words(&[8, 1, 1]), words(&[8, 512, 0]), words(&[u32::MAX])] {
        let mut output = Vec::new();
        assert!(replay(&mut player("calculator", ""), &mut input.as_slice(), &mut output).is_err(), "{input:?}");
        assert!(output.is_empty());
    }
}

#[test]
fn members_and_groups_by_number() {
    let setup = "
        act_prof_create_member shared send 5 0x11
        act_prof_create_member shared drop
        table_indirect_add members 0x01 => 0
        table_indirect_add members 0x02 => 1
        add members hdr.pair.key:0x03 send(port:6, value:0x22)
        act_prof_create_member balanced send 7 0x33
        act_prof_create_group balanced
        act_prof_add_member_to_group balanced 0 0
        table_indirect_add_with_group groups 0x81 => 0
    ";
    let mut player = player("profile", setup);
    assert_eq!(player.exchange(1, &[1, 0, 0]), [(5, vec![1, 0, 0x11])]);
    assert_eq!(player.exchange(1, &[2, 0, 0]), []);
    assert_eq!(player.exchange(1, &[3, 0, 0]), [(6, vec![3, 0, 0x22])]);
    assert_eq!(player.exchange(1, &[0x81, 0, 0]), [(7, vec![0x81, 0, 0x33])]);
    let wrong = |text: &str, part: &str| {
        let script = fairlane_stf::read(text).unwrap();
        let mut player = self::player("profile", "");
        let error = player.play(1, &script.statements[0].command).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    wrong("act_prof_create_member shared send 5", "2 parameters");
    wrong("act_prof_create_member nobody drop", "nobody");
    wrong("act_prof_add_member_to_group balanced 0 4", "no group 4");
    wrong("table_indirect_add members 0x01", "=> HANDLE");
    wrong("table_indirect_add members 1 2 => 0", "1 key fields");
}
