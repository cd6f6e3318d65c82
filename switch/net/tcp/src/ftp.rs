//! FTP, as simulators call it: a source that always has data, or a file of a given size.

use crate::Sender;

/// What an FTP source sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ftp {
    /// Data without end.
    Persistent,
    /// So many bytes, then the connection closes.
    Bytes(u64),
}

impl Ftp {
    /// Gives the sender its data; call before [`Sender::open`].
    pub fn attach(self, sender: &mut Sender) {
        match self {
            Ftp::Persistent => sender.write(u64::MAX),
            Ftp::Bytes(n) => {
                sender.write(n);
                sender.close();
            }
        }
    }
}
