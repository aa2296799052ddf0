//! What a member makes of the files of an earlier process.

use oxkeeper::member::start::saved_view_counts;
use oxkeeper::model::{Epoch, View, Zxid};

// rows: D-09
#[test]
fn a_kept_configuration_counts_unless_the_log_proves_otherwise() {
    let zxid = |(epoch, counter)| Zxid::new(Epoch(epoch), counter);
    let counts = |version, current, last: Option<(u32, u32)>| {
        let view = View::parse(&format!("server.1=a:1:2\nversion={:x}", zxid(version).to_wire()));
        saved_view_counts(&view.unwrap(), Epoch(current), last.map(zxid))
    };
    assert!(counts((5, 3), 5, Some((5, 3))), "the log has it");
    assert!(counts((5, 3), 5, Some((5, 9))));
    assert!(!counts((5, 3), 5, Some((5, 2))), "a crash between the file and the log");
    assert!(counts((5, 3), 5, None), "all data is lost, and it may have been acknowledged");
    assert!(counts((5, 3), 2, Some((2, 7))), "an older directory was restored");
    assert!(counts((5, 3), 6, Some((5, 2))), "acknowledged with NEWLEADER of the next epoch");
    assert!(counts((5, 0), 5, Some((4, 7))), "the first configuration of an epoch is in no log");
}
