//! The options of the P4Runtime server: TLS, by BMv2's names, and limits.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use fairlane_p4rt::{Limits, TlsFiles};

/// TLS, as `simple_switch_grpc` names it.
#[derive(Debug, Clone, Args)]
pub struct Tls {
    /// Serve P4Runtime over TLS
    #[arg(long)]
    grpc_server_ssl: bool,
    /// PEM file of who signs clients' certificates
    #[arg(long, value_name = "FILE.pem")]
    grpc_server_cacert: Option<PathBuf>,
    /// PEM file of the server's certificate
    #[arg(long, value_name = "FILE.pem")]
    grpc_server_cert: Option<PathBuf>,
    /// PEM file of the server's private key
    #[arg(long, value_name = "FILE.pem")]
    grpc_server_key: Option<PathBuf>,
    /// Refuse clients without a certificate signed by --grpc-server-cacert
    #[arg(long)]
    grpc_server_with_client_auth: bool,
}

impl Tls {
    /// The files of TLS; `None` when it was not asked for.
    ///
    /// # Errors
    /// A sentence: an option that would be without effect, or one that is missing.
    pub fn files(&self) -> Result<Option<TlsFiles>, String> {
        let given = [
            ("--grpc-server-cert", self.grpc_server_cert.is_some()),
            ("--grpc-server-key", self.grpc_server_key.is_some()),
            ("--grpc-server-cacert", self.grpc_server_cacert.is_some()),
            ("--grpc-server-with-client-auth", self.grpc_server_with_client_auth),
        ];
        if !self.grpc_server_ssl {
            // Whoever gives them believes that the connection is safe.
            return match given.iter().find(|(_, given)| *given) {
                Some((option, _)) => Err(format!("{option} has no effect without --grpc-server-ssl: give that, too")),
                None => Ok(None),
            };
        }
        let (Some(certificate), Some(key)) = (self.grpc_server_cert.clone(), self.grpc_server_key.clone()) else {
            return Err("--grpc-server-ssl needs --grpc-server-cert FILE.pem and --grpc-server-key FILE.pem".to_string());
        };
        let client_ca = match (self.grpc_server_with_client_auth, &self.grpc_server_cacert) {
            (true, None) => {
                return Err("--grpc-server-with-client-auth needs --grpc-server-cacert FILE.pem: the certificate of who signs \
                            clients' certificates"
                    .to_string())
            }
            (true, Some(path)) => Some(path.clone()),
            (false, _) => None,
        };
        Ok(Some(TlsFiles { certificate, key, client_ca }))
    }
}

/// What clients may take of the switch's memory.
#[derive(Debug, Clone, Args)]
pub struct ServerLimits {
    /// Longest P4Runtime message, in either direction
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_message_bytes)]
    grpc_server_max_message: usize,
    /// P4Runtime streams open at the same time
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_streams)]
    grpc_server_max_streams: usize,
    /// Messages that wait for one client; packets and digests beyond that are lost to it
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_queue)]
    grpc_server_max_queue: usize,
    /// P4Runtime reads under way at the same time; one whose client takes nothing makes room for another
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_reads)]
    grpc_server_max_reads: usize,
    /// Bytes that all reads together read ahead of their clients
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_read_bytes)]
    grpc_server_max_read_bytes: usize,
    /// Entries of one table, whatever size its program declares
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_table_entries)]
    max_table_entries: usize,
    /// Messages of one digest that wait to be sent or acknowledged; beyond that the oldest list is forgotten
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_digest_backlog)]
    max_digest_backlog: usize,
}

/// Shorter ones would not carry what every client sends first.
const LEAST_MESSAGE_BYTES: usize = 1024;
/// Each stream has a queue of this many messages at least: an answer to arbitration must find room.
const LEAST_QUEUE: usize = 16;

impl ServerLimits {
    /// The limits, each high enough to serve a client at all.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn check(&self) -> Result<Limits, String> {
        let least = [
            ("--grpc-server-max-message", self.grpc_server_max_message, LEAST_MESSAGE_BYTES),
            ("--grpc-server-max-streams", self.grpc_server_max_streams, 1),
            ("--grpc-server-max-queue", self.grpc_server_max_queue, LEAST_QUEUE),
            ("--grpc-server-max-reads", self.grpc_server_max_reads, 1),
            ("--grpc-server-max-read-bytes", self.grpc_server_max_read_bytes, 1),
            ("--max-table-entries", self.max_table_entries, 1),
            ("--max-digest-backlog", self.max_digest_backlog, 1),
        ];
        if let Some((option, given, least)) = least.into_iter().find(|(_, given, least)| given < least) {
            return Err(format!("{option} {given}: use {least} or more"));
        }
        Ok(Limits {
            max_message_bytes: self.grpc_server_max_message,
            max_table_entries: self.max_table_entries,
            max_digest_backlog: self.max_digest_backlog,
            max_streams: self.grpc_server_max_streams,
            max_queue: self.grpc_server_max_queue,
            max_reads: self.grpc_server_max_reads,
            max_read_bytes: self.grpc_server_max_read_bytes,
        })
    }
}

/// A warning when others than this machine can program the switch without showing who they are.
pub fn exposure(address: SocketAddr, tls: Option<&TlsFiles>) -> Option<String> {
    if address.ip().is_loopback() || tls.is_some_and(|files| files.client_ca.is_some()) {
        return None;
    }
    let lacking = match tls {
        None => "neither TLS nor client certificates (-- --grpc-server-ssl ... --grpc-server-with-client-auth)",
        Some(_) => "no client certificates (-- --grpc-server-with-client-auth)",
    };
    Some(format!("P4Runtime on {address} has {lacking}: whoever reaches it can program the switch"))
}

#[cfg(test)]
mod tests {
    use crate::cli::{parse, CliError, Options};

    fn parsed(line: &str) -> Result<Options, CliError> {
        parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    fn refused(line: &str) -> String {
        match parsed(line) {
            Err(CliError::Bad(message)) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn tls_is_whole_or_refused() {
        let with = |options: &str| format!("--no-p4 -- {options}");
        let options = parsed(&with(
            "--grpc-server-ssl --grpc-server-cert s.crt --grpc-server-key s.key --grpc-server-cacert ca.crt \
             --grpc-server-with-client-auth --grpc-server-addr 0.0.0.0:1",
        ))
        .expect("accepted");
        let files = options.tls.expect("TLS");
        assert_eq!((files.certificate, files.key, files.client_ca), ("s.crt".into(), "s.key".into(), Some("ca.crt".into())));
        assert!(options.notes.is_empty(), "{:?}", options.notes);
        assert!(parsed("--no-p4").expect("accepted").tls.is_none());
        let cases = [
            ("--grpc-server-ssl", "--grpc-server-ssl needs --grpc-server-cert FILE.pem and --grpc-server-key FILE.pem"),
            ("--grpc-server-cert s.crt", "--grpc-server-cert has no effect without --grpc-server-ssl: give that, too"),
            (
                "--grpc-server-ssl --grpc-server-cert a --grpc-server-key b --grpc-server-with-client-auth",
                "--grpc-server-with-client-auth needs --grpc-server-cacert FILE.pem: the certificate of who signs clients' \
                 certificates",
            ),
        ];
        for (options, message) in cases {
            assert_eq!(refused(&with(options)), message);
        }
    }

    #[test]
    fn limits_have_defaults_and_least_values() {
        let limits = parsed("--no-p4").expect("accepted").limits;
        assert_eq!(limits, fairlane_p4rt::Limits::default());
        let limits = parsed("--no-p4 -- --max-table-entries 7 --grpc-server-max-streams 2").expect("accepted").limits;
        assert_eq!((limits.max_table_entries, limits.max_streams), (7, 2));
        assert_eq!(refused("--no-p4 -- --max-table-entries 0"), "--max-table-entries 0: use 1 or more");
        assert_eq!(refused("--no-p4 -- --grpc-server-max-message 9"), "--grpc-server-max-message 9: use 1024 or more");
    }

    #[test]
    fn loopback_unless_told_otherwise() {
        let options = parsed("--no-p4").expect("accepted");
        assert!(options.grpc_address.is_some_and(|address| address.ip().is_loopback()));
        assert!(options.notes.is_empty());
        let options = parsed("--no-p4 -- --grpc-server-addr 0.0.0.0:9559").expect("accepted");
        assert_eq!(options.notes.len(), 1);
        assert!(options.notes[0].contains("whoever reaches it can program the switch"), "{:?}", options.notes);
    }
}
