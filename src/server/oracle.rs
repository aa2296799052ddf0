//! Reads the oracle file of two voters again and again, and reports each change of its answer to the driver.

use super::inbox::Inbox;
use crate::member::Input;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Pause between two reads of the file. Java reads it whenever it counts votes or ACKs.
const PAUSE: Duration = Duration::from_millis(50);
/// A file that cannot be read within this time, as on a network that is down, is a no.
const READ_MAX: Duration = Duration::from_secs(1);

/// Reads the file until the driver has ended, and reports each change of the answer. The driver begins with a no.
pub async fn poll_file(path: PathBuf, inbox: Arc<Inbox>) {
    let (mut agreed, mut failure) = (false, None);
    while !inbox.is_closed() {
        let asked = path.clone();
        let mut reading = tokio::task::spawn_blocking(move || answer(&asked));
        // A read that hangs is awaited, and no second read begins meanwhile.
        let answered = match tokio::time::timeout(READ_MAX, &mut reading).await {
            Ok(answered) => answered,
            Err(_) => {
                report_change(&mut agreed, false, &path, &inbox);
                tracing::warn!(
                    path = %path.display(),
                    "oracle unreadable, treated as no: its file system has not answered for 1 s; check it, or keep the file on a local disk"
                );
                reading.await
            }
        };
        let answer = answered.map_err(io::Error::other).flatten();
        let failed = answer.as_ref().err().map(ToString::to_string);
        if failed != failure {
            if let Some(error) = &failed {
                tracing::warn!(
                    path = %path.display(), %error,
                    "oracle unreadable, treated as no; check that the file exists and is readable"
                );
            }
            failure = failed;
        }
        report_change(&mut agreed, answer.unwrap_or(false), &path, &inbox);
        tokio::time::sleep(PAUSE).await;
    }
}

fn report_change(agreed: &mut bool, agrees: bool, path: &Path, inbox: &Inbox) {
    if std::mem::replace(agreed, agrees) == agrees {
        return;
    }
    let answer =
        if agrees { "this server may lead alone" } else { "this server may not lead alone" };
    tracing::info!(path = %path.display(), %answer, "the oracle's answer has changed");
    inbox.put_input(Input::Oracle { agrees });
}

/// The answer is yes if the first character is `1`; an empty file is a no.
///
/// Source: `QuorumOracleMaj.askOracle`, ZooKeeper 3.9.5.
fn answer(path: &Path) -> io::Result<bool> {
    let mut first = [0];
    Ok(File::open(path)?.read(&mut first)? == 1 && first == *b"1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::inbox::{Event, Waiting};

    async fn next_answer(inbox: &Inbox) -> Option<bool> {
        inbox.filled().await;
        let mut waiting = Waiting::default();
        inbox.take(&mut waiting);
        match waiting.events.pop()? {
            Event::Input(Input::Oracle { agrees }) => Some(agrees),
            _ => None,
        }
    }

    // rows: C-62 Q-96
    #[tokio::test]
    async fn a_changed_answer_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oracle");
        let inbox = Arc::<Inbox>::default();
        let asking = tokio::spawn(poll_file(path.clone(), inbox.clone()));
        for (text, agrees) in [("1\n", true), ("0", false), ("1", true), ("", false), ("10", true)]
        {
            // By renaming, because the file may be read at any moment.
            let new = folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, &path).unwrap();
            assert_eq!(next_answer(&inbox).await, Some(agrees), "{text:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(next_answer(&inbox).await, Some(false), "it is gone");
        inbox.close();
        asking.await.unwrap();
    }

    #[test]
    fn oracle_agrees_only_if_its_file_holds_1() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oracle");
        for (text, agrees) in [("1", true), (" 1", false), ("yes", false), ("01", false)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(answer(&path).unwrap(), agrees, "{text:?}");
        }
        assert!(answer(folder.path()).is_err() && answer(&folder.path().join("none")).is_err());
    }
}
