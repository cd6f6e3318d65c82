//! TLS of the server: a certificate of its own and, when asked for, certificates of clients (RFC 8446; options as in BMv2).

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, TrustAnchor, UnixTime};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

/// How long a client may take to agree on keys; beyond that its connection is closed.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Where the server's secrets are, all in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those that lead from it to one that clients know, in this order.
    pub certificate: PathBuf,
    /// The private key of the first of them, not encrypted.
    pub key: PathBuf,
    /// Certificates of who signs clients' certificates. Clients must show one then; `None` takes any client.
    pub client_ca: Option<PathBuf>,
}

/// Why a file cannot serve: the file, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

fn wrong<T>(path: &Path, what: impl fmt::Display) -> Result<T, TlsError> {
    Err(TlsError(format!("{}: {what}", path.display())))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).or_else(|error| wrong(path, error))
}

/// Checks a file of certificates, and gives its bytes.
fn certificates(path: &Path) -> Result<Vec<u8>, TlsError> {
    let bytes = read(path)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, PemError>>();
    match found {
        Ok(found) if found.is_empty() => wrong(path, "there is no certificate in it: give a PEM file with `-----BEGIN CERTIFICATE-----`"),
        Ok(_) => Ok(bytes),
        Err(error) => wrong(path, format!("not PEM: {error}")),
    }
}

/// Checks a file with a private key, and gives its bytes.
fn private_key(path: &Path) -> Result<Vec<u8>, TlsError> {
    let bytes = read(path)?;
    if bytes.windows(9).any(|window| window == b"ENCRYPTED") {
        let shown = path.display();
        return wrong(path, format!("the private key is encrypted: decrypt it first, with `openssl pkey -in {shown} -out FILE`"));
    }
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(_) => Ok(bytes),
        Err(PemError::NoItemsFound) => wrong(path, "there is no private key in it: give a PEM file with `-----BEGIN PRIVATE KEY-----`"),
        Err(error) => wrong(path, format!("not PEM: {error}")),
    }
}

/// Reads and checks the files, and makes of them what the server needs.
///
/// # Errors
/// The first file that cannot be read or is not what it should be. That key and certificate belong together is seen by
/// [`mismatch`] only when the server starts.
pub(crate) fn load(files: &TlsFiles) -> Result<ServerTlsConfig, TlsError> {
    let identity = Identity::from_pem(certificates(&files.certificate)?, private_key(&files.key)?);
    let config = ServerTlsConfig::new().identity(identity).timeout(HANDSHAKE);
    Ok(match &files.client_ca {
        Some(path) => config.client_ca_root(Certificate::from_pem(certificates(path)?)),
        None => config,
    })
}

/// What clients' certificates must be for. The handshake takes a certificate that names no purpose, as a server's often does;
/// [RFC 5280 sec 4.2.1.12] lets an application require that it names one.
pub(crate) struct Purpose {
    anchors: Vec<TrustAnchor<'static>>,
}

/// id-kp-clientAuth, 1.3.6.1.5.5.7.3.2, in DER.
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

impl Purpose {
    /// `None` where clients need no certificate.
    ///
    /// # Errors
    /// A certificate that signs nobody's.
    pub(crate) fn of_clients(files: &TlsFiles) -> Result<Option<Purpose>, TlsError> {
        let Some(path) = &files.client_ca else { return Ok(None) };
        let bytes = certificates(path)?;
        let anchor = |found: Result<CertificateDer<'static>, PemError>| {
            let certificate = found.or_else(|error| wrong(path, format!("not PEM: {error}")))?;
            let anchor = webpki::anchor_from_trusted_cert(&certificate).map(|anchor| anchor.to_owned());
            anchor.or_else(|error| wrong(path, format!("no certificate of an authority: {error}")))
        };
        let anchors = CertificateDer::pem_slice_iter(&bytes).map(anchor).collect::<Result<_, _>>()?;
        Ok(Some(Purpose { anchors }))
    }

    /// Whether a client's certificates, its own first, are for clients.
    pub(crate) fn holds(&self, shown: &[CertificateDer<'_>]) -> bool {
        let Some((own, others)) = shown.split_first() else { return false };
        let Ok(certificate) = webpki::EndEntityCert::try_from(own) else { return false };
        let (known, usage) = (webpki::ALL_VERIFICATION_ALGS, webpki::KeyUsage::required(CLIENT_AUTH));
        certificate.verify_for_usage(known, &self.anchors, others, UnixTime::now(), usage, None, None).is_ok()
    }
}

/// The files were read, but make no TLS server.
pub(crate) fn mismatch(files: &TlsFiles, error: &(dyn std::error::Error + 'static)) -> TlsError {
    let mut cause = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        cause = error.to_string();
        inner = error.source();
    }
    let (key, certificate) = (files.key.display(), files.certificate.display());
    TlsError(format!("{key}: does not serve with the certificate {certificate} ({cause}): give the key that it was made with"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("fairlane-tls-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a temporary file");
        path
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let absent = certificates(Path::new("/nonexistent/server.crt")).expect_err("absent").to_string();
        assert_eq!(absent, "/nonexistent/server.crt: No such file or directory (os error 2)");
        let cases = [
            ("empty", "", "there is no certificate in it: give a PEM file with `-----BEGIN CERTIFICATE-----`"),
            ("cut", "-----BEGIN CERTIFICATE-----\nAAAA\n", "not PEM: "),
        ];
        for (name, text, expected) in cases {
            let path = file(name, text);
            let said = certificates(&path).expect_err(name).to_string();
            assert!(said.starts_with(&format!("{}: {expected}", path.display())), "{said}");
            let _ = std::fs::remove_file(path);
        }
        let path = file("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
        let said = private_key(&path).expect_err("encrypted").to_string();
        assert!(said.contains("is encrypted: decrypt it first, with `openssl pkey -in "), "{said}");
        let _ = std::fs::remove_file(path);
        let path = file("no-key", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        let said = private_key(&path).expect_err("a certificate").to_string();
        assert!(said.contains("there is no private key in it"), "{said}");
        let _ = std::fs::remove_file(path);
    }
}
