//! The commands of AdminServer, and their names.

use super::super::Word;

macro_rules! commands {
    ($($command:ident = $primary:literal $(| $alias:literal)* $(, $serverless:ident)?;)*) => {
        /// A command.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum AdminCommand {
            $($command,)*
        }

        impl AdminCommand {
            /// All commands, in the order of their primary names.
            pub const ALL: &'static [AdminCommand] = &[$(Self::$command,)*];

            /// The name in answers and links.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$command => $primary,)*
                }
            }

            /// The command that a request names.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($primary $(| $alias)* => Some(Self::$command),)*
                    _ => None,
                }
            }

            /// Whether it is refused while clients are not served.
            pub fn needs_server(self) -> bool {
                let needs = |serverless: &[&str]| serverless.is_empty();
                match self {
                    $(Self::$command => needs(&[$(stringify!($serverless))?]),)*
                }
            }
        }
    };
}

// `always`: it is answered whether clients are served or not. Java declares `monitor` so too, and fails then.
commands! {
    Configuration = "configuration" | "conf" | "config";
    ConnectionStatReset = "connection_stat_reset" | "crst";
    Connections = "connections" | "cons";
    Dirs = "dirs";
    Dump = "dump";
    Environment = "environment" | "env" | "envi", always;
    GetTraceMask = "get_trace_mask" | "gtmk", always;
    Hash = "hash";
    InitialConfiguration = "initial_configuration" | "icfg";
    IsReadOnly = "is_read_only" | "isro";
    LastSnapshot = "last_snapshot" | "lsnp";
    Leader = "leader" | "lead";
    Monitor = "monitor" | "mntr";
    ObserverConnectionStatReset = "observer_connection_stat_reset" | "orst";
    Observers = "observers" | "obsr";
    Restore = "restore" | "rest";
    Ruok = "ruok";
    ServerStats = "server_stats" | "srvr";
    SetTraceMask = "set_trace_mask" | "stmk", always;
    Snapshot = "snapshot" | "snap";
    StatReset = "stat_reset" | "srst";
    Stats = "stats" | "stat";
    SystemProperties = "system_properties" | "sysp", always;
    VotingView = "voting_view";
    WatchSummary = "watch_summary" | "wchs";
    Watches = "watches" | "wchc";
    WatchesByPath = "watches_by_path" | "wchp";
    Zabstate = "zabstate", always;
}

impl AdminCommand {
    /// The four-letter word that needs the same values.
    pub fn word(self) -> Word {
        match self {
            Self::Configuration => Word::Conf,
            Self::Dirs | Self::ServerStats | Self::Stats => Word::Dirs,
            Self::Environment => Word::Envi,
            Self::Hash => Word::Hash,
            Self::Monitor => Word::Mntr,
            Self::WatchSummary => Word::Wchs,
            _ => Word::Srvr,
        }
    }

    /// Whether the answer has lists that grow with connections, sessions or watches.
    pub fn lists(self) -> bool {
        let lists =
            [Self::Connections, Self::Dump, Self::Stats, Self::Watches, Self::WatchesByPath];
        lists.contains(&self)
    }

    /// Whether credentials are asked for.
    pub fn is_guarded(self) -> bool {
        matches!(self, Self::Snapshot | Self::Restore)
    }

    /// Whether it is asked for by POST, not by GET.
    pub fn is_posted(self) -> bool {
        self == Self::Restore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: A-10 A-16 A-17 A-25 A-30 A-32 A-36
    #[test]
    fn primary_names_are_sorted_and_found() {
        assert_eq!(AdminCommand::ALL.len(), 28);
        assert!(AdminCommand::ALL.is_sorted_by_key(|command| command.name()));
        for command in AdminCommand::ALL {
            assert_eq!(AdminCommand::named(command.name()), Some(*command));
        }
        assert_eq!(AdminCommand::named("wchp"), Some(AdminCommand::WatchesByPath));
        assert_eq!(AdminCommand::named("ruok/"), None);
        let always = AdminCommand::ALL.iter().filter(|command| !command.needs_server());
        let always: Vec<&str> = always.map(|command| command.name()).collect();
        let java =
            ["environment", "get_trace_mask", "set_trace_mask", "system_properties", "zabstate"];
        assert_eq!(always, java);
    }
}
