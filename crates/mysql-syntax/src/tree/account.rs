//! Statements about accounts and privileges.

#![allow(missing_docs, reason = "fields and variants have MySQL's words for what they hold")]

use super::Text;
use crate::Keyword;
use alloc::vec::Vec;

/// `'user'@'host'`, or CURRENT_USER.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Account {
    Current,
    Name { user: Text, host: Text },
}

/// An account and how it proves who it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UserSpec {
    pub account: Account,
    pub auth: Auth,
    /// Further factors, RETAIN, DISCARD, registration: as they were written.
    pub more: Text,
}

/// IDENTIFIED …
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Auth {
    pub is_identified: bool,
    pub plugin: Text,
    pub password: Text,
    pub hash: Text,
    pub is_random: bool,
    /// REPLACE: the password until now.
    pub current: Text,
}

#[derive(Debug, Clone, PartialEq)]
pub struct UserChange {
    pub is_alter: bool,
    /// IF NOT EXISTS, or IF EXISTS in ALTER.
    pub if_exists: bool,
    pub users: Vec<UserSpec>,
    pub default_roles: Vec<Account>,
    /// DEFAULT ROLE ALL or NONE.
    pub default_role: Keyword,
    /// REQUIRE, WITH, PASSWORD, ACCOUNT, COMMENT and ATTRIBUTE, as they were written.
    pub options: Text,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Privilege {
    /// The name, in upper case if it is a static privilege; of a role, its name.
    pub name: Text,
    pub host: Text,
    /// One of MySQL's own privileges, whose name is a keyword.
    pub is_static: bool,
    pub columns: Vec<Text>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GrantLevel {
    /// `*`
    Here,
    /// `*.*`
    Global,
    /// `schema.*`
    Schema(Text),
    Object {
        schema: Text,
        name: Text,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum GrantWhat {
    /// ALL [PRIVILEGES], without ON in REVOKE ALL, GRANT OPTION.
    All,
    AllAndGrantOption,
    Privileges(Vec<Privilege>),
    Roles(Vec<Privilege>),
    Proxy(Account),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub is_revoke: bool,
    pub if_exists: bool,
    pub what: GrantWhat,
    /// TABLE, FUNCTION, PROCEDURE, or no word.
    pub object: Keyword,
    pub level: GrantLevel,
    pub users: Vec<Account>,
    pub with_grant_option: bool,
    pub with_admin_option: bool,
    pub ignore_unknown_user: bool,
    /// AS user WITH ROLE …, as it was written.
    pub run_as: Text,
}
