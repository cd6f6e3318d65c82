//! No allocation per segment once the buffers have grown, in the sender and in the receiver, with losses too.

#![allow(unsafe_code)]

use fairlane_tcp::{Config, Flavour, Receiver, Sender, Transmit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: System keeps the contract; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's layout, handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from System, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn nothing_is_allocated_per_segment() {
    for flavour in Flavour::ALL {
        let config = Config { flavour, handshake: false, max_window: 200 * 1460, ..Config::default() };
        let mut sender = Sender::new(config.clone(), 0).unwrap();
        let mut receiver = Receiver::new(config, 0).unwrap();
        receiver.listen_without_handshake(0);
        sender.write(u64::MAX);
        let (mut there, mut back): (Vec<Transmit>, Vec<Transmit>) = (Vec::with_capacity(1000), Vec::with_capacity(1000));
        sender.open(0, &mut there);
        let (mut now, mut count, mut before) = (0, 0u64, 0);
        for round in 0..2000 {
            now += 10_000_000;
            for t in there.drain(..) {
                count += 1;
                if count % 97 != 0 {
                    receiver.on_segment(now, &t.segment, false, &mut back);
                }
            }
            for t in back.drain(..) {
                sender.on_segment(now, &t.segment, &mut there);
            }
            receiver.on_timer(now, &mut back);
            // a flavour that paces sends on its timer, many times in a round
            while let Some(at) = sender.next_timer().filter(|&at| at < now + 10_000_000) {
                sender.on_timer(at.max(now), &mut there);
            }
            if round == 500 {
                before = ALLOCATIONS.with(Cell::get);
            }
        }
        assert!(sender.stats().loss_events() > 20 && count > 5_000, "{flavour:?}: {count} segments");
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "{flavour:?}");
    }
}
