//! Accounts and privileges.

use super::Printer;
use crate::Keyword;
use crate::tree::{Account, Grant, GrantLevel, GrantWhat, Privilege, UserChange, UserSpec};

impl Printer<'_> {
    pub(super) fn account(&mut self, account: Account) {
        match account {
            Account::Current => self.word("CURRENT_USER"),
            Account::Name { user, host } => self.user(user, host),
        }
    }

    fn user(&mut self, user: crate::tree::Text, host: crate::tree::Text) {
        self.text(user);
        if host.is_some() {
            self.raw("@");
            self.quoted(host);
        }
    }

    pub(super) fn accounts(&mut self, accounts: &[Account]) {
        self.commas(accounts, Self::account);
    }

    pub(super) fn user_change(&mut self, change: &UserChange) {
        self.word(if change.is_alter { "ALTER USER" } else { "CREATE USER" });
        self.word_if(change.if_exists, if change.is_alter { "IF EXISTS" } else { "IF NOT EXISTS" });
        self.commas(&change.users, Self::user_spec);
        if change.default_role != Keyword::None || !change.default_roles.is_empty() {
            self.word("DEFAULT ROLE");
            self.keyword(change.default_role);
            self.accounts(&change.default_roles);
        }
        self.source(change.options);
    }

    fn user_spec(&mut self, spec: UserSpec) {
        self.account(spec.account);
        let auth = spec.auth;
        self.word_if(auth.is_identified, "IDENTIFIED");
        self.name_behind("WITH", auth.plugin);
        if auth.hash.is_some() {
            self.word("AS");
            self.text_or_digits(auth.hash);
        }
        self.word_if(auth.is_random, "BY RANDOM PASSWORD");
        self.text_behind("BY", auth.password);
        self.text_behind("REPLACE", auth.current);
        self.source(spec.more);
    }

    /// What was a text, or digits in base 16 or 2 that begin as such.
    pub(super) fn text_or_digits(&mut self, text: crate::tree::Text) {
        let bytes = self.tree.text(text);
        let is_digits = bytes.len() > 2
            && matches!(bytes[0], b'0' | b'x' | b'X' | b'b' | b'B')
            && matches!(bytes[1], b'x' | b'b' | b'\'')
            && bytes[2..].iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'\'');
        if is_digits { self.bytes(text) } else { self.text(text) }
    }

    fn privilege(&mut self, privilege: &Privilege) {
        if privilege.is_static {
            self.bytes(privilege.name);
        } else {
            self.user(privilege.name, privilege.host);
        }
        self.names_in_parentheses(&privilege.columns);
    }

    pub(super) fn grant(&mut self, grant: &Grant) {
        self.word(if grant.is_revoke { "REVOKE" } else { "GRANT" });
        self.word_if(grant.if_exists, "IF EXISTS");
        let has_object = match &grant.what {
            GrantWhat::All => {
                self.word("ALL");
                true
            }
            GrantWhat::AllAndGrantOption => {
                self.word("ALL, GRANT OPTION");
                false
            }
            GrantWhat::Privileges(privileges) => {
                self.commas_ref(privileges, Self::privilege);
                true
            }
            GrantWhat::Roles(roles) => {
                self.commas_ref(roles, Self::privilege);
                false
            }
            GrantWhat::Proxy(account) => {
                self.word("PROXY ON");
                self.account(*account);
                false
            }
        };
        if has_object {
            self.word("ON");
            self.keyword(grant.object);
            match grant.level {
                GrantLevel::Here => self.word("*"),
                GrantLevel::Global => self.word("*.*"),
                GrantLevel::Schema(schema) => {
                    self.name(schema);
                    self.raw(".*");
                }
                GrantLevel::Object { schema, name } => self.qualified(schema, name),
            }
        }
        self.word(if grant.is_revoke { "FROM" } else { "TO" });
        self.accounts(&grant.users);
        self.word_if(grant.with_grant_option, "WITH GRANT OPTION");
        self.word_if(grant.with_admin_option, "WITH ADMIN OPTION");
        self.word_if(grant.ignore_unknown_user, "IGNORE UNKNOWN USER");
        self.source(grant.run_as);
    }
}
