//! A leader chooses an epoch only when a quorum has sent it their acceptedEpochs: no other leader can have a higher one
//! (ZOOKEEPER-335). And it refuses a voter whose data is of a later epoch: that voter would replace the ensemble's history, were it to lead.
//!
//! Source: `Leader.getEpochToPropose`, ZooKeeper 3.9.5.

use super::{Check, Event};

#[derive(Clone, Debug, Default)]
pub struct Epochs;

impl Check for Epochs {
    fn name(&self) -> &'static str {
        "epochs"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        match event {
            Event::Chooses { at, epoch, answered, quorum } if *answered < *quorum => {
                let epoch = epoch.0;
                Err(format!("{at} chooses epoch {epoch}, asked {answered} voters, {quorum} needed"))
            }
            Event::AnswersOutsider { at } => {
                Err(format!("{at} does not refuse a voter whose data is of a later epoch"))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn epoch_chosen_without_a_quorum_and_answer_to_a_voter_with_later_data_are_found() {
    use super::planted::{fails, holds};
    use oxkeeper::model::Epoch;
    let chooses = |answered| Event::Chooses { at: 1, epoch: Epoch(2), answered, quorum: 2 };
    holds(&mut Epochs, chooses(2));
    fails(&mut Epochs, chooses(1), "1 voters, 2 needed");
    fails(&mut Epochs, Event::AnswersOutsider { at: 1 }, "of a later epoch");
}
