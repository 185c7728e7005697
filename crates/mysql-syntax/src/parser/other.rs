//! Statements that LatsDB does not run: they are read to their end, and have a name by which they are refused.

use super::{Parser, Result};
use crate::SyntaxError;
use crate::tree::{Statement, Tree};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The name of a statement, and its pattern; the first that can begin is taken.
const OTHERS: &[(&str, &str)] = &[
    (
        "CREATE SERVER",
        "CREATE SERVER <nametext> FOREIGN DATA WRAPPER <nametext> OPTIONS ( { HOST <text> | DATABASE <text> | USER <text> \
         | PASSWORD <text> | SOCKET <text> | OWNER <text> | PORT <int> }, )",
    ),
    (
        "ALTER SERVER",
        "ALTER SERVER <nametext> OPTIONS ( { HOST <text> | DATABASE <text> | USER <text> | PASSWORD <text> \
         | SOCKET <text> | OWNER <text> | PORT <int> }, )",
    ),
    ("DROP SERVER", "DROP SERVER [ IF EXISTS ] <nametext>"),
    (
        "CREATE UNDO TABLESPACE",
        "CREATE UNDO TABLESPACE <name> ADD DATAFILE <text> [ ENGINE [ = ] <nametext> ]",
    ),
    (
        "ALTER UNDO TABLESPACE",
        "ALTER UNDO TABLESPACE <name> SET { ACTIVE | INACTIVE } [ ENGINE [ = ] <nametext> ]",
    ),
    ("DROP UNDO TABLESPACE", "DROP UNDO TABLESPACE <name> [ ENGINE [ = ] <nametext> ]"),
    (
        "CREATE TABLESPACE",
        "CREATE TABLESPACE <name> [ ADD DATAFILE <text> ] [ USE LOGFILE GROUP <name> ] \
         [ [ , ] { INITIAL_SIZE [ = ] <size> | AUTOEXTEND_SIZE [ = ] <size> | MAX_SIZE [ = ] <size> \
         | EXTENT_SIZE [ = ] <size> | NODEGROUP [ = ] <int> | [ STORAGE ] ENGINE [ = ] <nametext> | WAIT | NO_WAIT \
         | COMMENT [ = ] <text> | FILE_BLOCK_SIZE [ = ] <size> | ENCRYPTION [ = ] <text> | ENGINE_ATTRIBUTE [ = ] <text> } ]*",
    ),
    (
        "ALTER TABLESPACE",
        "ALTER TABLESPACE <name> { ADD DATAFILE <text> | DROP DATAFILE <text> | RENAME TO <name> | <options> } \
         [ [ , ] { INITIAL_SIZE [ = ] <size> | AUTOEXTEND_SIZE [ = ] <size> | MAX_SIZE [ = ] <size> \
         | [ STORAGE ] ENGINE [ = ] <nametext> | WAIT | NO_WAIT | ENCRYPTION [ = ] <text> | ENGINE_ATTRIBUTE [ = ] <text> } ]*",
    ),
    (
        "DROP TABLESPACE",
        "DROP TABLESPACE <name> [ [ , ] { [ STORAGE ] ENGINE [ = ] <nametext> | WAIT | NO_WAIT } ]*",
    ),
    (
        "CREATE LOGFILE GROUP",
        "CREATE LOGFILE GROUP <name> ADD UNDOFILE <text> \
         [ [ , ] { INITIAL_SIZE [ = ] <size> | UNDO_BUFFER_SIZE [ = ] <size> | REDO_BUFFER_SIZE [ = ] <size> \
         | NODEGROUP [ = ] <int> | [ STORAGE ] ENGINE [ = ] <nametext> | WAIT | NO_WAIT | COMMENT [ = ] <text> } ]*",
    ),
    (
        "ALTER LOGFILE GROUP",
        "ALTER LOGFILE GROUP <name> ADD UNDOFILE <text> \
         [ [ , ] { INITIAL_SIZE [ = ] <size> | [ STORAGE ] ENGINE [ = ] <nametext> | WAIT | NO_WAIT } ]*",
    ),
    (
        "DROP LOGFILE GROUP",
        "DROP LOGFILE GROUP <name> [ [ , ] { [ STORAGE ] ENGINE [ = ] <nametext> | WAIT | NO_WAIT } ]*",
    ),
    (
        "CREATE SPATIAL REFERENCE SYSTEM",
        "CREATE [ OR REPLACE ] SPATIAL REFERENCE SYSTEM [ IF NOT EXISTS ] <int> \
         [ NAME <text> | DEFINITION <text> | ORGANIZATION <text> IDENTIFIED BY <int> | DESCRIPTION <text> ]*",
    ),
    ("DROP SPATIAL REFERENCE SYSTEM", "DROP SPATIAL REFERENCE SYSTEM [ IF EXISTS ] <int>"),
    (
        "CREATE RESOURCE GROUP",
        "CREATE RESOURCE GROUP <name> TYPE [ = ] { USER | SYSTEM } [ VCPU [ = ] { <int> [ - <int> ] }, ] \
         [ THREAD_PRIORITY [ = ] [ - ] <int> ] [ ENABLE | DISABLE ]",
    ),
    (
        "ALTER RESOURCE GROUP",
        "ALTER RESOURCE GROUP <name> [ VCPU [ = ] { <int> [ - <int> ] }, ] [ THREAD_PRIORITY [ = ] [ - ] <int> ] \
         [ ENABLE | DISABLE [ FORCE ] ]",
    ),
    ("DROP RESOURCE GROUP", "DROP RESOURCE GROUP <name> [ FORCE ]"),
    (
        "ALTER INSTANCE",
        "ALTER INSTANCE { ROTATE <nametext> MASTER KEY | RELOAD TLS [ FOR CHANNEL <name> ] [ NO ROLLBACK ON ERROR ] \
      | { ENABLE | DISABLE } INNODB REDO_LOG | RELOAD KEYRING }",
    ),
    (
        "ALTER PROCEDURE",
        "ALTER PROCEDURE <table> [ COMMENT <text> | LANGUAGE SQL | NO SQL | CONTAINS SQL | READS SQL DATA | MODIFIES SQL DATA \
         | SQL SECURITY { DEFINER | INVOKER } ]*",
    ),
    (
        "ALTER FUNCTION",
        "ALTER FUNCTION <table> [ COMMENT <text> | LANGUAGE SQL | NO SQL | CONTAINS SQL | READS SQL DATA | MODIFIES SQL DATA \
         | SQL SECURITY { DEFINER | INVOKER } ]*",
    ),
    ("DROP PROCEDURE", "DROP PROCEDURE [ IF EXISTS ] <table>"),
    ("DROP FUNCTION", "DROP FUNCTION [ IF EXISTS ] <table>"),
    ("DROP TRIGGER", "DROP TRIGGER [ IF EXISTS ] <table>"),
    ("DROP EVENT", "DROP EVENT [ IF EXISTS ] <table>"),
    ("XA START", "XA { START | BEGIN } <xid> [ JOIN | RESUME ]"),
    ("XA END", "XA END <xid> [ SUSPEND [ FOR MIGRATE ] ]"),
    ("XA PREPARE", "XA PREPARE <xid>"),
    ("XA COMMIT", "XA COMMIT <xid> [ ONE PHASE ]"),
    ("XA ROLLBACK", "XA ROLLBACK <xid>"),
    ("XA RECOVER", "XA RECOVER [ CONVERT XID ]"),
    ("HANDLER", "HANDLER <table> { OPEN [ AS <name> | <name> ] | CLOSE | READ <handler> }"),
    ("PURGE BINARY LOGS", "PURGE BINARY LOGS { TO <text> | BEFORE <expr> }"),
    (
        "CACHE INDEX",
        "CACHE INDEX { { <table> [ { INDEX | KEY } ( [ { <name> | PRIMARY }, ] ) ] }, \
         [ PARTITION ( { ALL | { <name> }, } ) ] } IN { <name> | DEFAULT }",
    ),
    (
        "LOAD INDEX INTO CACHE",
        "LOAD INDEX INTO CACHE { <table> [ PARTITION ( { ALL | { <name> }, } ) ] \
         [ { INDEX | KEY } ( [ { <name> | PRIMARY }, ] ) ] [ IGNORE LEAVES ] },",
    ),
    (
        "LOAD DATA",
        "LOAD DATA [ LOW_PRIORITY | CONCURRENT ] [ LOCAL ] [ FROM ] { INFILE | URL | S3 } <text> [ COUNT <int> ] [ IN PRIMARY KEY ORDER ] \
         [ REPLACE | IGNORE ] INTO TABLE <table> [ PARTITION ( { <name> }, ) ] [ <charset> ] <format> \
         [ IGNORE <int> { LINES | ROWS } ] [ ( [ { <column> | <variable> }, ] ) ] [ SET <assignments> ] \
         [ PARALLEL = <int> ] [ MEMORY = <size> ] [ ALGORITHM = BULK ]",
    ),
    (
        "LOAD XML",
        "LOAD XML [ LOW_PRIORITY | CONCURRENT ] [ LOCAL ] INFILE <text> [ REPLACE | IGNORE ] INTO TABLE <table> \
         [ PARTITION ( { <name> }, ) ] [ <charset> ] [ ROWS IDENTIFIED BY <text> ] <format> [ IGNORE <int> { LINES | ROWS } ] \
         [ ( [ { <column> | <variable> }, ] ) ] [ SET <assignments> ]",
    ),
    ("IMPORT TABLE", "IMPORT TABLE FROM { <text> },"),
    ("INSTALL PLUGIN", "INSTALL PLUGIN <name> SONAME <text>"),
    (
        "INSTALL COMPONENT",
        "INSTALL COMPONENT { <text> }, [ SET { [ GLOBAL | PERSIST ] <name> [ . <name> ] { = | := } { <expr> | ON | ALL | BINARY } }, ]",
    ),
    ("UNINSTALL PLUGIN", "UNINSTALL PLUGIN <name>"),
    ("UNINSTALL COMPONENT", "UNINSTALL COMPONENT { <text> },"),
    (
        "CLONE",
        "CLONE { LOCAL DATA DIRECTORY [ = ] <text> \
         | INSTANCE FROM <user> : <int> IDENTIFIED BY <text> [ DATA DIRECTORY [ = ] <text> ] [ REQUIRE [ NO ] SSL ] }",
    ),
    ("BINLOG", "BINLOG <text>"),
    (
        "CHANGE REPLICATION SOURCE",
        "CHANGE REPLICATION SOURCE TO { <source> }, [ FOR CHANNEL <text> ]",
    ),
    (
        "CHANGE REPLICATION FILTER",
        "CHANGE REPLICATION FILTER { REPLICATE_DO_DB = ( [ { <name> }, ] ) | REPLICATE_IGNORE_DB = ( [ { <name> }, ] ) \
         | REPLICATE_DO_TABLE = ( [ { <table> }, ] ) | REPLICATE_IGNORE_TABLE = ( [ { <table> }, ] ) \
         | REPLICATE_WILD_DO_TABLE = ( [ { <text> }, ] ) | REPLICATE_WILD_IGNORE_TABLE = ( [ { <text> }, ] ) \
         | REPLICATE_REWRITE_DB = ( [ { ( <name> , <name> ) }, ] ) }, [ FOR CHANNEL <text> ]",
    ),
    (
        "START REPLICA",
        "START REPLICA [ { SQL_THREAD | IO_THREAD | RELAY_THREAD }, ] [ UNTIL { SQL_BEFORE_GTIDS = <text> | SQL_AFTER_GTIDS = <text> \
         | SQL_AFTER_MTS_GAPS | { SOURCE_LOG_FILE = <text> | SOURCE_LOG_POS = <int> | RELAY_LOG_FILE = <text> \
         | RELAY_LOG_POS = <int> }, } ] [ USER = <text> ] [ PASSWORD = <text> ] [ DEFAULT_AUTH = <text> ] [ PLUGIN_DIR = <text> ] \
         [ FOR CHANNEL <text> ]",
    ),
    (
        "STOP REPLICA",
        "STOP REPLICA [ { SQL_THREAD | IO_THREAD | RELAY_THREAD }, ] [ FOR CHANNEL <text> ]",
    ),
    (
        "START GROUP_REPLICATION",
        "START GROUP_REPLICATION [ { USER = <text> | PASSWORD = <text> | DEFAULT_AUTH = <text> }, ]",
    ),
    ("STOP GROUP_REPLICATION", "STOP GROUP_REPLICATION"),
    (
        "RESET BINARY LOGS AND GTIDS",
        "RESET BINARY LOGS AND GTIDS [ TO <number> ] [ , { <reset> }, ]",
    ),
    ("RESET REPLICA", "RESET REPLICA [ ALL ] [ FOR CHANNEL <text> ] [ , { <reset> }, ]"),
    ("SHUTDOWN", "SHUTDOWN"),
    ("RESTART", "RESTART"),
    ("SIGNAL", "SIGNAL { SQLSTATE [ VALUE ] <text> | <name> } [ SET { <signal> }, ]"),
    ("RESIGNAL", "RESIGNAL [ SQLSTATE [ VALUE ] <text> | <name> ] [ SET { <signal> }, ]"),
    (
        "GET DIAGNOSTICS",
        "GET [ CURRENT | STACKED ] DIAGNOSTICS { CONDITION <expr> { { <variable> | <name> } = <condition> }, \
         | { { <variable> | <name> } = { NUMBER | ROW_COUNT } }, }",
    ),
];

/// Parts of patterns that have a name.
const PARTS: &[(&str, &str)] = &[
    (
        "<options>",
        "{ INITIAL_SIZE [ = ] <size> | AUTOEXTEND_SIZE [ = ] <size> | MAX_SIZE [ = ] <size> | ENCRYPTION [ = ] <text> \
      | [ STORAGE ] ENGINE [ = ] <nametext> | ENGINE_ATTRIBUTE [ = ] <text> | WAIT | NO_WAIT }",
    ),
    (
        "<reset>",
        "{ BINARY LOGS AND GTIDS [ TO <number> ] | REPLICA [ ALL ] [ FOR CHANNEL <text> ] }",
    ),
    ("<xid>", "{ <value> } [ , <value> [ , <number> ] ]"),
    (
        "<handler>",
        "{ FIRST | NEXT | <name> { FIRST | NEXT | PREV | LAST | { = | <= | >= | < | > } ( { <expr> }, ) } } \
         [ WHERE <expr> ] [ LIMIT <limit> [ , <limit> | OFFSET <limit> ] ]",
    ),
    ("<charset>", "{ CHARACTER SET <nametext> | CHAR SET <nametext> | CHARSET <nametext> }"),
    ("<column>", "<name> [ . <name> [ . <name> ] ]"),
    (
        "<signal>",
        "{ CLASS_ORIGIN | SUBCLASS_ORIGIN | CONSTRAINT_CATALOG | CONSTRAINT_SCHEMA | CONSTRAINT_NAME | CATALOG_NAME \
         | SCHEMA_NAME | TABLE_NAME | COLUMN_NAME | CURSOR_NAME | MESSAGE_TEXT | MYSQL_ERRNO } = <expr>",
    ),
    (
        "<condition>",
        "{ CLASS_ORIGIN | SUBCLASS_ORIGIN | CONSTRAINT_CATALOG | CONSTRAINT_SCHEMA | CONSTRAINT_NAME | CATALOG_NAME \
         | SCHEMA_NAME | TABLE_NAME | COLUMN_NAME | CURSOR_NAME | MESSAGE_TEXT | MYSQL_ERRNO | RETURNED_SQLSTATE }",
    ),
    (
        "<source>",
        "{ { SOURCE_HOST | NETWORK_NAMESPACE | SOURCE_BIND | SOURCE_USER | SOURCE_PASSWORD | SOURCE_LOG_FILE | RELAY_LOG_FILE \
         | SOURCE_COMPRESSION_ALGORITHMS | SOURCE_SSL_CA | SOURCE_SSL_CAPATH | SOURCE_SSL_CERT | SOURCE_SSL_CRL \
         | SOURCE_SSL_CRLPATH | SOURCE_SSL_KEY | SOURCE_SSL_CIPHER | SOURCE_TLS_VERSION | SOURCE_PUBLIC_KEY_PATH } = <text> \
         | SOURCE_TLS_CIPHERSUITES = { <text> | NULL } \
         | { SOURCE_PORT | SOURCE_CONNECT_RETRY | SOURCE_RETRY_COUNT | SOURCE_DELAY | SOURCE_SSL | SOURCE_SSL_VERIFY_SERVER_CERT \
         | GET_SOURCE_PUBLIC_KEY | SOURCE_AUTO_POSITION | SOURCE_CONNECTION_AUTO_FAILOVER | REQUIRE_ROW_FORMAT | GTID_ONLY \
         | SOURCE_ZSTD_COMPRESSION_LEVEL | RELAY_LOG_POS | SOURCE_LOG_POS | SOURCE_HEARTBEAT_PERIOD } = <number> \
         | IGNORE_SERVER_IDS = ( [ { <int> }, ] ) \
         | PRIVILEGE_CHECKS_USER = { NULL | <user> } | REQUIRE_TABLE_PRIMARY_KEY_CHECK = { STREAM | ON | OFF | GENERATE } \
         | ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = { OFF | LOCAL | <text> } }",
    ),
];

/// The pattern that a name in a pattern stands for.
pub(super) fn part(name: &str) -> Option<&'static str> {
    PARTS.iter().find(|(part, _)| *part == name).map(|(_, pattern)| *pattern)
}

impl Parser<'_> {
    /// A statement that has only a name.
    pub(super) fn other(&mut self) -> Result<Statement> {
        let first = self.at;
        for (name, pattern) in OTHERS {
            if self.starts(pattern) {
                self.follow(pattern)?;
                return Ok(self.other_since(name, first));
            }
        }
        Err(self.furthest_error(first))
    }

    /// No statement begins like this: the error is where the one stops that goes furthest.
    fn furthest_error(&mut self, first: usize) -> Box<SyntaxError> {
        let mut furthest = self.error();
        let depth = self.depth;
        for (_, pattern) in OTHERS {
            if self.has_first_word(pattern)
                && let Err(error) = self.follow(pattern)
                && error.at > furthest.at
            {
                furthest = error;
            }
            (self.at, self.depth) = (first, depth);
        }
        furthest
    }

    /// A statement whose beginning is passed.
    pub(super) fn other_behind(
        &mut self,
        name: &'static str,
        pattern: &'static str,
    ) -> Result<Statement> {
        self.follow(pattern)?;
        Ok(self.other_since(name, 0))
    }

    /// The statement that consists of the tokens from one on; its parts are not kept.
    pub(super) fn other_since(&mut self, name: &'static str, first: usize) -> Statement {
        let (parameters, warnings) =
            (self.tree.parameters, core::mem::take(&mut self.tree.warnings));
        if !self.is_in_program {
            self.tree = Tree { parameters, warnings, ..Tree::default() };
            self.scratch = Vec::new();
        }
        let text = self.raw_from(first);
        Statement::Other { name, text }
    }
}
