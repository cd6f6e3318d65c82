//! Packets through a switch in batches, over a pair of byte streams: how another program compares this switch with its own.
//!
//! All numbers are 32 bits, little endian. A batch is its length in bytes, then for each packet port, length, bytes. The answer is
//! its length in bytes, then for each packet of the batch the number of packets that came out, and each as port, length, bytes. A batch
//! of length 0 asks for the state: the answer is the text of [`Player::state`].

use std::io::{self, Read, Write};

use crate::run::Player;

/// Longest batch in bytes.
const LONGEST: u32 = 1 << 28;

/// Answers batches until the input ends. A malformed batch is an error of kind `InvalidData`.
pub fn replay(player: &mut Player, input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    while let Some(length) = length(input)? {
        if length > LONGEST {
            return Err(malformed("a batch is too long"));
        }
        let mut batch = vec![0; length as usize];
        input.read_exact(&mut batch)?;
        let answer = if batch.is_empty() { player.state().map_err(malformed)?.into_bytes() } else { exchange(player, &batch)? };
        output.write_all(&(answer.len() as u32).to_le_bytes())?;
        output.write_all(&answer)?;
        output.flush()?;
    }
    Ok(())
}

fn exchange(player: &mut Player, batch: &[u8]) -> io::Result<Vec<u8>> {
    let mut answer = Vec::with_capacity(batch.len() + batch.len() / 8);
    let mut rest = batch;
    while !rest.is_empty() {
        let port = word(&mut rest)?;
        let length = word(&mut rest)? as usize;
        if port > 511 || length > rest.len() {
            return Err(malformed("a batch holds a packet longer than itself, or a port above 511"));
        }
        let (packet, after) = rest.split_at(length);
        rest = after;
        let out = player.exchange(port, packet);
        answer.extend((out.len() as u32).to_le_bytes());
        for (port, bytes) in out {
            answer.extend(port.to_le_bytes());
            answer.extend((bytes.len() as u32).to_le_bytes());
            answer.extend(bytes);
        }
    }
    Ok(answer)
}

/// The next batch's length; `None` at the end of the input.
fn length(input: &mut impl Read) -> io::Result<Option<u32>> {
    let mut bytes = [0; 4];
    let mut filled = 0;
    while filled < 4 {
        match input.read(&mut bytes[filled..])? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(malformed("the input ends within a batch")),
            n => filled += n,
        }
    }
    Ok(Some(u32::from_le_bytes(bytes)))
}

fn word(rest: &mut &[u8]) -> io::Result<u32> {
    let (first, after) = rest.split_first_chunk::<4>().ok_or_else(|| malformed("the last packet of a batch is cut"))?;
    *rest = after;
    Ok(u32::from_le_bytes(*first))
}

fn malformed(message: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
