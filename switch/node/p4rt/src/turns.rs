//! Which requests may run beside each other.
//!
//! A large `Read` or `Write` is done in parts, with packets in between. A read must see what it reads either before or after a write, and
//! never between two parts of one [P4Runtime sec 13.4]. So reads run beside
//! reads, a write runs alone, and each waits for those that came before it. Waiting has a bound: see [`ReadTurn::hurried`].

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{watch, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// How long a write waits for reads whose clients do not take what has been read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The turns of one service.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    order: Arc<RwLock<()>>,
    /// Changes when a write has waited long enough.
    hurry: watch::Sender<()>,
}

/// The turn of a read, until it is dropped.
#[derive(Debug)]
pub(crate) struct ReadTurn {
    _guard: OwnedRwLockReadGuard<()>,
    hurry: watch::Receiver<()>,
}

impl ReadTurn {
    /// A write has waited long enough.
    pub fn is_hurried(&self) -> bool {
        self.hurry.has_changed().unwrap_or(true)
    }

    /// Ends when a write has waited too long: a read that waits for its client then has to give up.
    pub async fn hurried(&mut self) {
        if self.hurry.changed().await.is_err() {
            // The service is gone, and whoever waits for a turn with it.
            std::future::pending::<()>().await;
        }
    }
}

impl Turns {
    /// Waits for the turn of a read.
    pub async fn read(&self) -> ReadTurn {
        let guard = Arc::clone(&self.order).read_owned().await;
        ReadTurn { _guard: guard, hurry: self.hurry.subscribe() }
    }

    /// Waits for the turn of a write.
    pub async fn write(&self) -> OwnedRwLockWriteGuard<()> {
        let turn = Arc::clone(&self.order).write_owned();
        tokio::pin!(turn);
        tokio::select! {
            turn = &mut turn => return turn,
            () = tokio::time::sleep(PATIENCE) => {}
        }
        self.hurry.send_replace(());
        turn.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_waits_its_time_and_then_hurries_reads() {
        let turns = Arc::new(Turns::default());
        let (mut first, second) = (turns.read().await, turns.read().await);
        let waiting = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.write().await }
        });
        tokio::time::sleep(PATIENCE / 2).await;
        assert!(!first.is_hurried());
        // A read that comes later waits behind the write, and is not hurried for it.
        let late = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.read().await }
        });
        first.hurried().await;
        drop((first, second));
        drop(waiting.await.expect("its turn"));
        assert!(!late.await.expect("its turn").is_hurried());
    }
}
