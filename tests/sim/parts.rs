//! Parts of the simulator by themselves: the network, and the search for a smaller plan.

use bytes::Bytes;
use oxkeeper::sim::network::{Attached, Chunk, EndId, Holder, Network};
use oxkeeper::sim::plan::MS;
use oxkeeper::sim::shrink::shrink;

fn arrivals(network: &mut Network, end: EndId, now_us: u64) -> usize {
    std::iter::from_fn(|| network.arrive(now_us, end)).count()
}

/// The end of a client.
fn attached(node: usize) -> Attached {
    Attached { node, holder: Holder::Client(node) }
}

#[test]
fn bytes_wait_while_cut_off_and_are_lost_when_the_connection_breaks() {
    let mut network = Network::new(1, 100);
    let end = network.connect(attached(0), attached(1));
    for _ in 0..50 {
        network.send(0, end, Bytes::from_static(b"x")).unwrap();
    }
    network.cut(0, 1);
    network.cut(0, 1);
    assert!(!network.reaches(1, 0) && !network.reaches(0, 1));
    assert_eq!(arrivals(&mut network, end.other(), MS * 1000), 0);
    assert!(network.mend(MS * 1000, 0, 1).is_empty(), "another fault keeps it cut");
    let due = network.mend(MS * 1000, 0, 1);
    assert_eq!(due.len(), 50);
    assert!(due.is_sorted_by(|a, b| a.0 <= b.0));
    assert_eq!(arrivals(&mut network, end.other(), MS * 1001), 50);
    for _ in 0..50 {
        network.send(MS * 2000, end, Bytes::from_static(b"x")).unwrap();
    }
    let due = network.break_between(MS * 2000, 1, 0);
    assert_eq!(due.len(), 2);
    let arrived = arrivals(&mut network, end.other(), MS * 3000);
    assert!((1..51).contains(&arrived), "{arrived}: some of it, and the end");
    assert!(network.send(0, end.other(), Bytes::new()).is_none(), "the end has reached it");
    assert!(matches!(network.arrive(MS * 3000, end), Some(Chunk::End)));
    assert!(network.close(0, end).is_none() && network.is_empty());
}

#[test]
fn closing_one_end_of_a_connection_closes_the_other_end() {
    let mut network = Network::new(1, 100);
    let end = network.connect(attached(0), attached(1));
    assert!(network.close(0, end.other()).is_some());
    assert!(network.send(0, end.other(), Bytes::new()).is_none());
    assert_eq!(arrivals(&mut network, end, MS * 1000), 1);
    assert!(network.is_empty());
}

#[test]
fn shrinking_keeps_the_steps_that_a_failure_needs() {
    let mut tries = 0;
    let kept = shrink(500, 1000, |steps| {
        tries += 1;
        [17, 18, 400].iter().all(|step| steps.contains(step))
    });
    assert_eq!(kept, [17, 18, 400]);
    assert!(tries < 200, "{tries}");
    assert!(shrink(40, 1000, |_| true).is_empty());
    assert_eq!(shrink(4, 1000, |_| false), [0, 1, 2, 3]);
}
