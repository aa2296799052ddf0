//! Notifications as bytes.

use bytes::Bytes;
use oxkeeper::model::ServerId;
use oxkeeper::zab::PeerState::{Following, Leading, Looking, Observing};
use oxkeeper::zab::election::NotificationError;
use oxkeeper::zab::{Notification, Vote};
use proptest::prelude::*;

const TEXT: &str = "server.1=127.0.0.1:1:2:participant\nversion=1f";

fn notification() -> Notification {
    Notification {
        state: Following,
        vote: Vote { epoch: 3, zxid: 0x2_0000_0005, leader: ServerId(7) },
        round: 9,
        version: 2,
        config: Some(Bytes::from_static(TEXT.as_bytes())),
        is_ours: false,
        candidates_view: None,
    }
}

// rows: Q-01
#[test]
fn fields_stand_where_java_puts_them() {
    let bytes = notification().encode();
    assert_eq!(bytes[..4], 1_i32.to_be_bytes());
    assert_eq!(bytes[4..12], 7_i64.to_be_bytes());
    assert_eq!(bytes[12..20], 0x2_0000_0005_i64.to_be_bytes());
    assert_eq!(bytes[20..28], 9_i64.to_be_bytes());
    assert_eq!(bytes[28..36], 3_i64.to_be_bytes());
    assert_eq!(bytes[36..40], 2_i32.to_be_bytes());
    assert_eq!(bytes[40..44], (TEXT.len() as i32).to_be_bytes());
    assert_eq!(&bytes[44..], TEXT.as_bytes());
}

// rows: Q-01
#[test]
fn messages_of_java_are_read_and_written_alike() {
    let golden = include_str!("../../compat-tests/golden/election/messages.txt");
    let mut states = Vec::new();
    for (name, hex) in golden.lines().filter_map(|line| line.split_once(' ')) {
        if name == "hello" {
            continue; // The first message of a connection, no notification.
        }
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        let read = Notification::decode(&bytes).unwrap();
        assert_eq!((read.version, read.is_ours, read.config_version()), (2, false, 0));
        assert_eq!(read.encode(), bytes, "{name}");
        states.push((name, read.state, read.vote.leader.0, read.vote.epoch));
    }
    let expected =
        [("following", Following, 2, 1), ("leading", Leading, 2, 1), ("looking", Looking, 2, 0)];
    assert_eq!(states, expected);
}

// rows: Q-02
#[test]
fn zk_1810_older_formats_are_read() {
    let whole = notification().encode();
    let read = |bytes: &[u8]| Notification::decode(bytes).unwrap();
    let oldest = read(&whole[..28]);
    assert_eq!((oldest.version, oldest.vote.epoch), (0, 2), "epoch of the zxid");
    let old = read(&whole[..40]);
    assert_eq!((old.version, old.vote.epoch, old.config), (0, 3, None), "no version is read");
    let mut first = whole[..44].to_vec();
    first[36..40].copy_from_slice(&1_i32.to_be_bytes());
    let first = read(&first);
    assert_eq!((first.version, first.config), (1, None));
    assert_eq!(read(&whole), notification());
}

#[test]
fn zk_3769_notification_that_is_cut_off_is_an_error() {
    let whole = notification().encode();
    for len in (0..whole.len()).filter(|len| ![28, 40].contains(len)) {
        let error = Notification::decode(&whole[..len]).unwrap_err();
        let wrong_length = 44 <= len && matches!(error, NotificationError::ConfigLength { .. });
        assert!(wrong_length || matches!(error, NotificationError::Short { .. }), "{error}");
    }
    for claimed in [-1, i32::MIN, i32::MAX, whole.len() as i32 + 1] {
        let mut wrong = whole.to_vec();
        wrong[40..44].copy_from_slice(&claimed.to_be_bytes());
        let error = Notification::decode(&wrong).unwrap_err();
        assert_eq!(error, NotificationError::ConfigLength { len: whole.len(), claimed });
    }
    let mut wrong = whole.to_vec();
    wrong[3] = 4;
    assert_eq!(Notification::decode(&wrong), Err(NotificationError::State(4)));
}

#[test]
fn zk_4787_any_text_is_carried_as_it_is() {
    let text = "server.1=zoo-\u{e9}\u{4e2d}:1:2\nversion=2".as_bytes().to_vec();
    for text in [text, b"\xff\xfe\nversion=2".to_vec()] {
        let sent = Notification { config: Some(text.clone().into()), ..notification() };
        let read = Notification::decode(&sent.encode()).unwrap();
        assert_eq!((read.config.as_deref(), read.config_version()), (Some(&text[..]), 2));
    }
}

#[test]
fn our_mark_is_found_after_the_text_only() {
    let ours = Notification { is_ours: true, ..notification() };
    let bytes = ours.encode();
    assert_eq!(Notification::decode(&bytes).unwrap(), ours);
    let with_view = Notification { candidates_view: Some(TEXT.into()), ..ours };
    let bytes = with_view.encode();
    assert_eq!(Notification::decode(&bytes).unwrap(), with_view);
    let mut later = bytes.to_vec();
    later[bytes.len() - TEXT.len() - 5] = 9;
    later.extend_from_slice(b"what a later version adds");
    assert_eq!(Notification::decode(&later).unwrap(), with_view);
    later.truncate(bytes.len() - 1);
    Notification::decode(&later).unwrap_err();
    let inside = Notification { config: Some(Bytes::from_static(b"oxkeeper")), ..notification() };
    assert!(!Notification::decode(&inside.encode()).unwrap().is_ours);
}

#[test]
fn configuration_version_is_read_from_its_text() {
    let of = |text: &'static str| {
        Notification { config: Some(text.into()), ..notification() }.config_version()
    };
    assert_eq!(of(TEXT), 0x1f);
    assert_eq!(of("version=100000003\n"), 0x1_0000_0003);
    assert_eq!([of(""), of("version=x"), of("server.1=a:1:2")], [0; 3]);
}

#[test]
fn votes_are_ordered_by_epoch_then_zxid_then_server() {
    let vote = |epoch, zxid, leader| Vote { epoch, zxid, leader: ServerId(leader) };
    assert!(vote(2, 0, 1) > vote(1, 9, 9));
    assert!(vote(1, 5, 1) > vote(1, 4, 9));
    assert!(vote(1, 5, 3) > vote(1, 5, 2));
    assert!(vote(0, 0, 0) > Vote::NOTHING);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..90)) {
        if let Ok(read) = Notification::decode(&bytes) {
            prop_assert!(read.config.as_ref().is_none_or(|text| text.len() + 44 <= bytes.len()));
        }
    }

    #[test]
    fn written_notification_is_read_again(
        state in prop::sample::select(vec![Looking, Following, Leading, Observing]), longs in any::<[i64; 4]>(), text in prop::collection::vec(any::<u8>(), 0..60), is_ours: bool, has_view: bool,
    ) {
        let [leader, zxid, epoch, round] = longs;
        let sent = Notification {
            state,
            vote: Vote { epoch, zxid, leader: ServerId(leader) },
            round,
            version: 2,
            config: Some(text.clone().into()),
            is_ours,
            candidates_view: (is_ours && has_view).then(|| Bytes::from(text.clone())),
        };
        prop_assert_eq!(Notification::decode(&sent.encode()).unwrap(), sent);
    }
}
