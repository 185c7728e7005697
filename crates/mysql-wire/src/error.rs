//! What can be wrong with bytes from a client, and how MySQL words it.

/// Why bytes of a client were refused, or a reply could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A packet announced more bytes than the connection allows.
    #[error("Got a packet bigger than 'max_allowed_packet' bytes")]
    PacketTooLarge {
        /// Bytes that the packet would have at least.
        bytes: usize,
        /// Bytes that a packet may have.
        limit: usize,
    },
    /// A packet carried another sequence number than the one that was due.
    #[error("Got packets out of order")]
    OutOfOrder {
        /// The number that was due.
        expected: u8,
        /// The number that came.
        found: u8,
    },
    /// A payload ended too early or held something that the protocol does not allow there.
    #[error("Malformed communication packet ({0})")]
    Malformed(&'static str),
    /// The client speaks the protocol of MySQL 4.0 or older.
    #[error(
        "Client does not support authentication protocol requested by server; \
         consider upgrading MySQL client"
    )]
    ClientTooOld,
    /// The client asked for TLS although the server did not offer it.
    #[error("Bad handshake: this server does not offer TLS; connect with TLS disabled")]
    TlsNotOffered,
    /// An execute request bound a parameter to a type that no client can bind.
    #[error("Incorrect arguments to mysqld_stmt_execute (parameter type {0})")]
    UnsupportedParameterType(u8),
    /// A parameter's bytes are not a value of its type.
    #[error("Incorrect arguments to mysqld_stmt_execute (value of parameter {0})")]
    BadParameter(u16),
    /// A statement was executed before the types of its parameters were ever sent.
    #[error("Incorrect arguments to mysqld_stmt_execute (no parameter types were bound)")]
    UnboundParameters,
    /// A value of a result row cannot be written as the column's type.
    #[error("The value of result column {0} does not fit the column's type")]
    ValueMismatch(usize),
}

impl WireError {
    /// MySQL's error number for it.
    pub fn errno(&self) -> u16 {
        match self {
            Self::PacketTooLarge { .. } => 1153,
            Self::OutOfOrder { .. } => 1156,
            Self::Malformed(_) => 1835,
            Self::ClientTooOld => 1251,
            Self::TlsNotOffered => 1043,
            Self::UnsupportedParameterType(_) | Self::BadParameter(_) | Self::UnboundParameters => {
                1210
            }
            Self::ValueMismatch(_) => 1105,
        }
    }

    /// The SQLSTATE that goes with [`Self::errno`].
    pub fn sqlstate(&self) -> [u8; 5] {
        match self {
            Self::PacketTooLarge { .. } | Self::OutOfOrder { .. } | Self::TlsNotOffered => {
                *b"08S01"
            }
            Self::ClientTooOld => *b"08004",
            _ => *b"HY000",
        }
    }

    /// Whether the byte stream cannot be followed any further, so that the connection must close.
    pub fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::Malformed(_)
                | Self::UnsupportedParameterType(_)
                | Self::BadParameter(_)
                | Self::UnboundParameters
                | Self::ValueMismatch(_)
        )
    }
}
