//! The specification's rules as a table of steps, and the invariant that no sequence of steps may break.

use super::*;
use p4::stream_message_response::Update;
use proptest::prelude::*;

const DEVICE: u64 = 7;

fn update(device_id: u64, role: &str, id: Option<u128>) -> p4::MasterArbitrationUpdate {
    p4::MasterArbitrationUpdate {
        device_id,
        role: (!role.is_empty()).then(|| p4::Role { name: role.to_string(), ..Default::default() }),
        election_id: id.map(message),
        status: None,
    }
}

/// (client, code, highest election id) of each notification.
fn seen(notifications: &[Notification]) -> Vec<(u64, i32, Option<u128>)> {
    notifications
        .iter()
        .map(|(client, response)| match &response.update {
            Some(Update::Arbitration(update)) => {
                assert_eq!(update.device_id, DEVICE);
                (client.0, update.status.as_ref().unwrap().code, update.election_id.as_ref().map(election_id))
            }
            other => panic!("not an arbitration update: {other:?}"),
        })
        .collect()
}

const OK: i32 = 0;
const BACKUP: i32 = 6;
const NONE: i32 = 5;

enum Step {
    /// Client, role, election id; the notifications it leads to.
    Says(u64, &'static str, Option<u128>, &'static [(u64, i32, Option<u128>)]),
    /// Client, role, election id; the code with which its stream is closed.
    Closed(u64, &'static str, Option<u128>, Code),
    /// A client leaves; the notifications it leads to.
    Leaves(u64, &'static [(u64, i32, Option<u128>)]),
    /// Who is primary of the default role.
    Primary(Option<u64>),
}

use Step::{Closed, Leaves, Primary, Says};

fn play(name: &str, steps: &[Step]) {
    let mut state = Arbitration::new(DEVICE);
    for (index, step) in steps.iter().enumerate() {
        match step {
            Says(client, role, id, expected) => {
                let got = state.update(ClientId(*client), &update(DEVICE, role, *id));
                assert_eq!(seen(&got.unwrap_or_else(|status| panic!("{name}, step {index}: {status}"))), *expected, "{name}, step {index}");
            }
            Closed(client, role, id, code) => {
                let status = state.update(ClientId(*client), &update(DEVICE, role, *id)).unwrap_err();
                assert_eq!(status.code, *code, "{name}, step {index}: {status}");
                state.disconnect(ClientId(*client));
            }
            Leaves(client, expected) => assert_eq!(seen(&state.disconnect(ClientId(*client))), *expected, "{name}, step {index}"),
            Primary(client) => {
                let primary = (0..10).map(ClientId).find(|client| state.is_primary(*client));
                assert_eq!(primary.map(|client| client.0), *client, "{name}, step {index}");
            }
        }
    }
}

#[test]
fn transitions() {
    play("the first client with an id is primary", &[Says(1, "", Some(5), &[(1, OK, Some(5))]), Primary(Some(1))]);
    play(
        "a lower id is a backup, and only it hears of it",
        &[Says(1, "", Some(5), &[(1, OK, Some(5))]), Says(2, "", Some(4), &[(2, BACKUP, Some(5))]), Primary(Some(1))],
    );
    play(
        "a higher id takes over; the new primary hears last",
        &[
            Says(3, "", Some(5), &[(3, OK, Some(5))]),
            Says(2, "", Some(4), &[(2, BACKUP, Some(5))]),
            Says(1, "", Some(6), &[(2, BACKUP, Some(6)), (3, BACKUP, Some(6)), (1, OK, Some(6))]),
            Primary(Some(1)),
        ],
    );
    play(
        "the primary repeats itself: all hear, it stays",
        &[
            Says(1, "", Some(5), &[(1, OK, Some(5))]),
            Says(2, "", Some(4), &[(2, BACKUP, Some(5))]),
            Says(1, "", Some(5), &[(2, BACKUP, Some(5)), (1, OK, Some(5))]),
            Primary(Some(1)),
        ],
    );
    play(
        "the primary steps down: nobody is, and the highest id stays",
        &[
            Says(1, "", Some(5), &[(1, OK, Some(5))]),
            Says(2, "", Some(4), &[(2, BACKUP, Some(5))]),
            Says(1, "", Some(3), &[(1, NONE, Some(5)), (2, NONE, Some(5))]),
            Primary(None),
            Says(2, "", Some(4), &[(2, NONE, Some(5))]),
            Primary(None),
            Says(2, "", Some(5), &[(1, BACKUP, Some(5)), (2, OK, Some(5))]),
            Primary(Some(2)),
        ],
    );
    play(
        "the primary disconnects and comes back with its id",
        &[
            Says(1, "", Some(5), &[(1, OK, Some(5))]),
            Says(2, "", Some(4), &[(2, BACKUP, Some(5))]),
            Leaves(1, &[(2, NONE, Some(5))]),
            Primary(None),
            Says(3, "", Some(5), &[(2, BACKUP, Some(5)), (3, OK, Some(5))]),
            Primary(Some(3)),
        ],
    );
    play(
        "a backup leaves without a word",
        &[Says(1, "", Some(5), &[(1, OK, Some(5))]), Says(2, "", Some(4), &[(2, BACKUP, Some(5))]), Leaves(2, &[]), Leaves(2, &[])],
    );
    play(
        "an unset id or 0 never wins; without any primary no id is told",
        &[
            Says(1, "", None, &[(1, NONE, None)]),
            Says(2, "", Some(0), &[(2, NONE, None)]),
            Says(3, "", None, &[(3, NONE, None)]),
            Primary(None),
            Says(4, "", Some(1), &[(1, BACKUP, Some(1)), (2, BACKUP, Some(1)), (3, BACKUP, Some(1)), (4, OK, Some(1))]),
            Says(4, "", None, &[(1, NONE, Some(1)), (2, NONE, Some(1)), (3, NONE, Some(1)), (4, NONE, Some(1))]),
            Primary(None),
        ],
    );
    play(
        "an id in use closes the stream of who repeats it",
        &[
            Says(1, "", Some(5), &[(1, OK, Some(5))]),
            Closed(2, "", Some(5), Code::InvalidArgument),
            Says(3, "", Some(4), &[(3, BACKUP, Some(5))]),
            Closed(3, "", Some(5), Code::InvalidArgument),
            Primary(Some(1)),
        ],
    );
    play(
        "ids have 128 bits",
        &[
            Says(1, "", Some(u64::MAX as u128), &[(1, OK, Some(u64::MAX as u128))]),
            Says(2, "", Some(1 << 64), &[(1, BACKUP, Some(1 << 64)), (2, OK, Some(1 << 64))]),
        ],
    );
    play(
        "roles are apart, and a stream keeps its own",
        &[
            Says(1, "", Some(5), &[(1, OK, Some(5))]),
            Says(2, "x", Some(5), &[(2, OK, Some(5))]),
            Says(3, "x", Some(6), &[(2, BACKUP, Some(6)), (3, OK, Some(6))]),
            Primary(Some(1)),
            Closed(3, "y", Some(9), Code::FailedPrecondition),
            Leaves(1, &[]),
        ],
    );
}

#[test]
fn another_device() {
    let mut state = Arbitration::new(DEVICE);
    assert_eq!(state.update(ClientId(1), &update(8, "", Some(1))).unwrap_err().code, Code::NotFound);
    assert!(state.update(ClientId(1), &update(DEVICE, "", Some(1))).is_ok());
    assert_eq!(state.update(ClientId(1), &update(8, "", Some(1))).unwrap_err().code, Code::FailedPrecondition);
}

#[test]
fn writes_need_the_primary() {
    let mut state = Arbitration::new(DEVICE);
    let role = RoleKey::default();
    let check = |state: &Arbitration, role: &RoleKey, id: Option<u128>| {
        state.check_primary(DEVICE, role, id.map(message).as_ref()).map_err(|status| status.code)
    };
    assert_eq!(check(&state, &role, Some(1)), Err(Code::PermissionDenied));
    assert_eq!(check(&state, &RoleKey::new("x", 0), Some(1)), Err(Code::NotFound));
    state.update(ClientId(1), &update(DEVICE, "", Some(5))).unwrap();
    assert_eq!(check(&state, &role, Some(5)), Ok(()));
    for other in [None, Some(0), Some(4), Some(6), Some(5 << 64)] {
        assert_eq!(check(&state, &role, other), Err(Code::PermissionDenied), "{other:?}");
    }
    assert_eq!(state.check_primary(8, &role, Some(&message(5))).unwrap_err().code, Code::NotFound);
    state.disconnect(ClientId(1));
    assert_eq!(check(&state, &role, Some(5)), Err(Code::PermissionDenied));
}

#[test]
fn clients_of_a_role_are_limited() {
    let mut state = Arbitration::new(DEVICE);
    for client in 0..MAX_CLIENTS_PER_ROLE as u64 {
        state.update(ClientId(client), &update(DEVICE, "", None)).unwrap();
    }
    assert_eq!(state.update(ClientId(999), &update(DEVICE, "", None)).unwrap_err().code, Code::ResourceExhausted);
    assert!(state.update(ClientId(1000), &update(DEVICE, "other", None)).is_ok());
}

proptest! {
    /// Whatever clients do: at most one primary for a role, with the highest id ever seen, and everyone's last notification is true.
    #[test]
    fn notifications_are_true(steps in prop::collection::vec((0u64..5, prop::option::of(0u128..6), 0u8..5), 1..60)) {
        let mut state = Arbitration::new(DEVICE);
        let mut told: BTreeMap<u64, (i32, Option<u128>)> = BTreeMap::new();
        let mut highest: Option<u128> = None;
        for (client, id, what) in steps {
            let id_of = ClientId(client);
            let notifications = if what == 0 {
                told.remove(&client);
                state.disconnect(id_of)
            } else {
                match state.update(id_of, &update(DEVICE, "", id)) {
                    Ok(notifications) => {
                        if let Some(id) = id.filter(|id| *id > 0) {
                            highest = highest.max(Some(id));
                        }
                        notifications
                    }
                    Err(status) => {
                        prop_assert_eq!(status.code, Code::InvalidArgument);
                        told.remove(&client);
                        state.disconnect(id_of)
                    }
                }
            };
            for (client, code, seen) in seen(&notifications) {
                told.insert(client, (code, seen));
            }
            let primaries: Vec<u64> = (0..5).filter(|client| state.is_primary(ClientId(*client))).collect();
            prop_assert!(primaries.len() <= 1);
            for (client, (code, seen)) in &told {
                let expected = match primaries.first() {
                    Some(primary) if primary == client => OK,
                    Some(_) => BACKUP,
                    None => NONE,
                };
                prop_assert_eq!(*code, expected);
                prop_assert_eq!(*seen, highest);
            }
        }
    }
}
