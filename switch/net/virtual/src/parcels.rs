//! What partitions of one network send each other, as bytes: frames on their way, calls of the control plane and what it is told, what has left senders, flows
//! that start. Zeros at a frame's end, which are the payload of most, are counted and not sent.

use fairlane_p4rt::proto::p4::v1::StreamMessageResponse;
use fairlane_p4rt::{Code, Status};
use prost::Message;

use crate::control::{Answer, Call, Event, Order, Place, Request};
use crate::io::FramePool;
use crate::nodes::Flying;
use crate::Nanos;

/// One thing that goes from one partition to another.
#[derive(Debug)]
pub(crate) enum Parcel {
    /// In a channel.
    Frame {
        channel: u32,
        flying: Flying,
    },
    Call {
        switch: u32,
        call: Call,
    },
    Event {
        order: Order,
        event: Event,
    },
    /// A segment of a flow left.
    Left {
        flow: u32,
        sequence: u32,
        time: Nanos,
    },
    /// The flow of a receiving end will start, because the flows are over for which it waited; known since `now`.
    Starts {
        end: u32,
        now: Nanos,
        start: Nanos,
    },
}

const FRAME: u8 = 0;
const CALL: u8 = 1;
const EVENT: u8 = 2;
const LEFT: u8 = 3;
const STARTS: u8 = 4;

/// All codes of answers.
const CODES: [Code; 13] = [
    Code::Ok,
    Code::Unknown,
    Code::InvalidArgument,
    Code::NotFound,
    Code::AlreadyExists,
    Code::PermissionDenied,
    Code::ResourceExhausted,
    Code::FailedPrecondition,
    Code::Aborted,
    Code::OutOfRange,
    Code::Unimplemented,
    Code::Internal,
    Code::Unavailable,
];

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn put_status(out: &mut Vec<u8>, status: &Status) {
    put_u32(out, status.code as u32);
    put_bytes(out, status.message.as_bytes());
    put_u32(out, status.details.len() as u32);
    for detail in &status.details {
        let (code, message) = detail.as_ref().map_or((Code::Ok, ""), |(code, message)| (*code, message));
        put_u32(out, code as u32);
        put_bytes(out, message.as_bytes());
    }
}

impl Parcel {
    /// Appends it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Parcel::Frame { channel, flying: Flying { arrival, sent, frame } } => {
                out.push(FRAME);
                put_u32(out, *channel);
                put_u64(out, *arrival);
                put_u64(out, *sent);
                let kept = frame.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                put_u32(out, frame.len() as u32);
                put_bytes(out, &frame[..kept]);
            }
            Parcel::Call { switch, call: Call { at, sent, number, token, request } } => {
                out.push(CALL);
                put_u32(out, *switch);
                [at, sent, number, token].into_iter().for_each(|&value| put_u64(out, value));
                let (kind, bytes) = match request {
                    Request::SetPipeline(bytes) => (0, bytes),
                    Request::Write(bytes) => (1, bytes),
                    Request::Read(bytes) => (2, bytes),
                    Request::Stream(bytes) => (3, bytes),
                };
                out.push(kind);
                put_bytes(out, bytes);
            }
            Parcel::Event { order, event } => {
                out.push(EVENT);
                write_event(order, event, out);
            }
            Parcel::Left { flow, sequence, time } => {
                out.push(LEFT);
                put_u32(out, *flow);
                put_u32(out, *sequence);
                put_u64(out, *time);
            }
            Parcel::Starts { end, now, start } => {
                out.push(STARTS);
                put_u32(out, *end);
                put_u64(out, *now);
                put_u64(out, *start);
            }
        }
    }
}

fn write_event(Order { at, sent, place }: &Order, event: &Event, out: &mut Vec<u8>) {
    put_u64(out, *at);
    put_u64(out, *sent);
    let (kind, first, second) = match *place {
        Place::Answer { call, part } => (0, call, part),
        Place::Said { switch, number } => (1, switch as u64, number),
        Place::Timer(number) => (2, number, 0),
    };
    out.push(kind);
    put_u64(out, first);
    put_u64(out, second);
    match event {
        Event::Start => out.push(0),
        Event::Timer(id) => {
            out.push(1);
            put_u64(out, *id);
        }
        Event::Answer { switch, token, answer } => {
            out.push(if answer.is_ok() { 2 } else { 3 });
            put_u32(out, *switch as u32);
            put_u64(out, *token);
            match answer {
                Ok(parts) => {
                    put_u32(out, parts.len() as u32);
                    parts.iter().for_each(|part| put_bytes(out, part));
                }
                Err(status) => put_status(out, status),
            }
        }
        Event::Stream { switch, message } => {
            out.push(4);
            put_u32(out, *switch as u32);
            put_bytes(out, &message.encode_to_vec());
        }
    }
}

/// Reads parcels one after the other. `None` where the bytes are none of ours.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    fn code(&mut self) -> Option<Code> {
        let code = self.u32()?;
        CODES.into_iter().find(|&known| known as u32 == code)
    }

    fn status(&mut self) -> Option<Status> {
        let (code, message, count) = (self.code()?, self.text()?, self.u32()?);
        let mut details = Vec::new();
        for _ in 0..count {
            let (code, message) = (self.code()?, self.text()?);
            details.push((code != Code::Ok).then_some((code, message)));
        }
        Some(Status { code, message, details })
    }

    /// The next parcel; its frame in a buffer of the pool.
    pub(crate) fn parcel(&mut self, pool: &mut FramePool) -> Option<Parcel> {
        match self.u8()? {
            FRAME => {
                let (channel, arrival, sent, length) = (self.u32()?, self.u64()?, self.u64()?, self.u32()?);
                let mut frame = pool.take();
                frame.extend_from_slice(self.bytes()?);
                frame.resize(length as usize, 0);
                Some(Parcel::Frame { channel, flying: Flying { arrival, sent, frame } })
            }
            CALL => {
                let (switch, at, sent, number, token) = (self.u32()?, self.u64()?, self.u64()?, self.u64()?, self.u64()?);
                let (kind, bytes) = (self.u8()?, self.bytes()?.to_vec());
                let request = match kind {
                    0 => Request::SetPipeline(bytes),
                    1 => Request::Write(bytes),
                    2 => Request::Read(bytes),
                    3 => Request::Stream(bytes),
                    _ => return None,
                };
                Some(Parcel::Call { switch, call: Call { at, sent, number, token, request } })
            }
            EVENT => self.event(),
            LEFT => Some(Parcel::Left { flow: self.u32()?, sequence: self.u32()?, time: self.u64()? }),
            STARTS => Some(Parcel::Starts { end: self.u32()?, now: self.u64()?, start: self.u64()? }),
            _ => None,
        }
    }

    fn event(&mut self) -> Option<Parcel> {
        let (at, sent, kind, first, second) = (self.u64()?, self.u64()?, self.u8()?, self.u64()?, self.u64()?);
        let place = match kind {
            0 => Place::Answer { call: first, part: second },
            1 => Place::Said { switch: first as usize, number: second },
            2 => Place::Timer(first),
            _ => return None,
        };
        let event = match self.u8()? {
            0 => Event::Start,
            1 => Event::Timer(self.u64()?),
            kind @ (2 | 3) => {
                let (switch, token) = (self.u32()? as usize, self.u64()?);
                Event::Answer { switch, token, answer: self.answer(kind == 2)? }
            }
            4 => Event::Stream { switch: self.u32()? as usize, message: StreamMessageResponse::decode(self.bytes()?).ok()? },
            _ => return None,
        };
        Some(Parcel::Event { order: Order { at, sent, place }, event })
    }

    fn answer(&mut self, good: bool) -> Option<Answer> {
        if !good {
            return Some(Err(self.status()?));
        }
        let count = self.u32()?;
        (0..count).map(|_| self.bytes().map(<[u8]>::to_vec)).collect::<Option<_>>().map(Ok)
    }
}
