//! Whole configurations of members, and what is refused or warned of.

use crate::{file, with as with_base};
use oxkeeper::config::Config;
use oxkeeper::model::Rule;
use std::path::Path;

const THREE: &str = "dataDir=/d\nclientPort=2181\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";

fn with(lines: &str, my_id: Option<&str>) -> Result<Config, String> {
    file(&format!("{THREE}{lines}\n"), my_id).map_err(|error| error.to_string())
}

// rows: D-01
#[test]
fn missing_setting_is_reported_with_its_line() {
    assert_eq!(
        with("", Some("1")).unwrap_err(),
        "zoo.cfg:3: initLimit is not set, which an ensemble needs; add initLimit=10\n\
         zoo.cfg:3: syncLimit is not set, which an ensemble needs; add syncLimit=5"
    );
    let limits = "initLimit=5\nsyncLimit=2";
    assert_eq!(
        with(limits, None).unwrap_err(),
        "zoo.cfg:1: the file /d/myid is missing; \
         write this server's id into it, one of 1, 2, 3"
    );
    assert_eq!(
        with(limits, Some("4")).unwrap_err(),
        "zoo.cfg:3: the file /d/myid has 4, which is not one of the servers 1, 2, 3; correct the file; \
         if a reconfiguration removed this server, leave it stopped, or add it as docs/operations.md, \"Add or remove a member\", says; so also if it was stopped while it joined"
    );
    let text = format!("dataDir=/d\n{limits}\nserver.1=a:1:2;2181\nserver.2=b:1:2;2181\n");
    assert_eq!(
        file(&text, Some("4")).unwrap_err().to_string(),
        "zoo.cfg:4: the file /d/myid has 4, which is not one of the servers 1, 2; correct the file; \
         if a reconfiguration removed this server, leave it stopped, or add it as docs/operations.md, \"Add or remove a member\", says; so also if it was stopped while it joined",
        "its line would give the client port"
    );
    assert_eq!(
        with(&format!("{limits}\nserver.4=d:1:1\nserver.5=e"), Some("1")).unwrap_err(),
        "zoo.cfg:8: server.4=d:1:1 has one port twice; quorum and election need one each; correct it\n\
         zoo.cfg:9: server.5=e is not host:port:port; correct it"
    );
    assert_eq!(
        with(&format!("{limits}\ngroup.1=1:2"), Some("1")).unwrap_err(),
        "zoo.cfg:5: server.3 votes and is in no group; correct it"
    );
    let error = with("initLimit=0\nsyncLimit=2", Some("1")).unwrap_err();
    assert!(error.starts_with("zoo.cfg:6: initLimit=0 is not within 1 and"), "{error}");
    for wrong in ["initLimit=-1\nsyncLimit=2", "initLimit=5\nsyncLimit=-2"] {
        assert!(with(wrong, Some("1")).unwrap_err().contains("is not within"), "{wrong}");
    }
    let error = with("initLimit=5\nsyncLimit=2\nobserverMasterPort=65536", Some("1")).unwrap_err();
    assert!(
        error.ends_with("observerMasterPort=65536 is above 65535; write 65535 or less"),
        "{error}"
    );
    let error = with("initLimit=5\nsyncLimit=2\ncnxTimeout=5s", Some("1")).unwrap_err();
    assert_eq!(
        error,
        "zoo.cfg:8: cnxTimeout=5s is not a number of ms; write one from 0 to 2147483647"
    );
}

#[test]
fn wrong_server_line_hides_no_other_problem() {
    let text_of = |lines: &str, my_id: Option<&str>| {
        let text =
            format!("dataDir=/d\nclientPort=2181\nserver.1=a:1:2\nserver.2=b:x:2\n{lines}\n");
        file(&text, my_id).unwrap_err().to_string()
    };
    let line = "zoo.cfg:4: server.2=b:x:2 has an invalid port; correct it";
    assert_eq!(text_of("initLimit=5\nsyncLimit=2\npeerType=observer", Some("1")), line);
    let limits = text_of("syncLimit=0", None);
    let missing = "zoo.cfg:1: the file /d/myid is missing; write this server's id into it\n";
    assert!(limits.starts_with(missing) && limits.contains(line), "{limits}");
    assert!(
        limits.contains("initLimit is not set") && limits.contains("syncLimit=0 is not within")
    );
    let tls = text_of("initLimit=5\nsyncLimit=2\nsslQuorum=true", Some("1"));
    assert!(tls.contains(line) && tls.contains("set ssl.quorum.keyStore.location"), "{tls}");
    let one = file("dataDir=/d\nclientPort=2181\nserver.1=a:x:2\n", None).unwrap_err().to_string();
    assert_eq!(
        one, "zoo.cfg:3: server.1=a:x:2 has an invalid port; correct it",
        "it may be standalone"
    );
}

// rows: C-66
#[test]
fn groups_and_versions_without_servers_are_still_checked() {
    let of = |lines: &str| {
        let config = with_base(lines).map_err(|error| error.to_string())?;
        assert_eq!(config.ensemble, None, "{lines}");
        Ok(config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(
        of("group.1=1\nweight.1=1").unwrap(),
        [
            "zoo.cfg:3: group.1=1: no effect; there are no server.N lines; remove it",
            "zoo.cfg:4: weight.1=1: no effect; there are no server.N lines; remove it",
        ]
    );
    assert!(of("version=1f").unwrap()[0].starts_with("zoo.cfg:3: version=1f: no effect"));
    for (lines, why) in [
        ("version=xyz", "zoo.cfg:3: version=xyz is not a hexadecimal number; correct it"),
        ("version=", "zoo.cfg:3: version= is not a hexadecimal number"),
        ("group.1=1", "zoo.cfg:3: group.1 names server 1, which does not vote and has no weight"),
        ("weight.1=x", "zoo.cfg:3: weight.1=x is not a whole number from 0 on"),
        ("group.1=1\nweight.1=1\nversion=x", "zoo.cfg:5: version=x is not"),
        ("standaloneEnabled=false\nweight.1=1", "zoo.cfg:3: standaloneEnabled=false needs servers"),
    ] {
        let error: String = of(lines).expect_err(lines);
        assert!(error.starts_with(why), "{error}");
    }
}

// rows: D-01
#[test]
fn server_id_above_254_is_refused_with_extended_types() {
    let of = |id: &str, lines: &str| {
        let text = format!(
            "dataDir=/d\nclientPort=2181\ninitLimit=5\nsyncLimit=2\nserver.1=a:1:2\nserver.2=b:1:2\n\
             server.254=c:1:2\nserver.255=d:1:2\n{lines}\n"
        );
        file(&text, Some(id)).map_err(|error| error.to_string()).map(drop)
    };
    assert_eq!((of("255", ""), of("254", "extendedTypesEnabled=true")), (Ok(()), Ok(())));
    let error = of("255", "extendedTypesEnabled=true").unwrap_err();
    let expected = "zoo.cfg: myid 255 is above 254, the highest with extendedTypesEnabled=true";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(of("one", ""), Err("zoo.cfg:1: the file /d/myid has \"one\", which is not a number; write this server's id into it".to_owned()));
}

// rows: C-27
#[test]
fn election_algorithm_other_than_3_is_refused() {
    let limits = "initLimit=5\nsyncLimit=2";
    assert!(with(&format!("{limits}\nelectionAlg=3"), Some("1")).unwrap().warnings.is_empty());
    for other in ["0", "1", "2", "4", "-1"] {
        let error = with(&format!("{limits}\nelectionAlg={other}"), Some("1")).unwrap_err();
        assert!(error.starts_with(&format!("zoo.cfg:8: electionAlg={other} must be 3")), "{error}");
    }
}

// rows: C-08 C-29
#[test]
fn risky_ensembles_are_warned_of() {
    let warned = |lines: &str| {
        let config = with(&format!("initLimit=5\nsyncLimit=2\n{lines}"), Some("1")).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(warned(""), [""; 0]);
    assert_eq!(
        warned("server.4=0.0.0.0:1:2"),
        [
            "zoo.cfg:3: 4 voters survive no more failures than 3. Use an odd number.",
            "zoo.cfg:8: server.4 has an address to which no other server can connect; \
             name another, and set quorumListenOnAllIPs=true",
        ]
    );
    assert_eq!(
        warned("server.3=c:1:2:observer\npeerType=observer"),
        [
            "zoo.cfg:3: Two voters: any failure stops the ensemble. Use at least three.",
            "zoo.cfg:5: server.3 is set again in line 8, which counts; remove one of them",
            "zoo.cfg:9: peerType=observer has no effect: server.1 is a participant by its server.N line; correct one of them",
        ]
    );
    assert_eq!(
        warned("oraclePath=/o"),
        ["zoo.cfg:8: oraclePath=/o: no effect with 3 voters; it is for two: remove it"]
    );
    let pair = warned("server.3=c:1:2:observer\noraclePath=/o");
    assert_eq!(pair.len(), 2, "{pair:?}");
    assert!(pair[0].starts_with("zoo.cfg:3: Two voters and an oracle: if it lets"), "{pair:?}");
    assert_eq!(
        warned("group.1=1:2:3\nweight.1=0\nweight.2=0\nweight.3=0"),
        ["zoo.cfg:3: all voters together are not a quorum; correct the weights"]
    );
}

#[test]
fn defaults_of_members_follow_other_settings() {
    let of = |lines: &str| {
        let lines = format!("initLimit=5\nsyncLimit=2\ntickTime=2000\n{lines}");
        with(&lines, Some("1")).unwrap().ensemble.unwrap()
    };
    let plain = of("");
    assert_eq!((plain.connect_limit_ticks, plain.election_read_timeout_ms), (5, 4000));
    assert_eq!(plain.election_bind_tries, Some(3));
    assert_eq!((plain.oracle_path.as_ref(), plain.dynamic_file.as_ref()), (None, None));
    assert_eq!(of("quorumCnxnTimeoutMs=7").election_read_timeout_ms, 7);
    assert_eq!(of("electionPortBindRetry=0").election_bind_tries, None);
    assert_eq!(of("electionPortBindRetry=-1").election_bind_tries, Some(3));
    let oracle = of("oraclePath=/o\ngroup.1=1");
    assert_eq!(oracle.oracle_path.unwrap(), Path::new("/o"));
    assert_eq!(oracle.view.rule, Rule::Majority, "no groups beside an oracle");
}
