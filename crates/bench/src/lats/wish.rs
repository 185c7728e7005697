//! A person's wish that the gauge end before it is through: its cluster is taken down then, and nothing is written.

use anyhow::bail;
use tokio::sync::watch;

/// Whether somebody wants that by now, and how it was said.
#[derive(Clone, Debug)]
pub struct Wish(watch::Receiver<Option<&'static str>>);

/// A wish that nobody has yet, and how it is told.
pub fn wish() -> (watch::Sender<Option<&'static str>>, Wish) {
    let (tell, told) = watch::channel(None);
    (tell, Wish(told))
}

impl Wish {
    /// True from the moment on at which it was told.
    pub fn is_told(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Goes on, unless it was told.
    ///
    /// # Errors
    /// It was.
    pub fn check(&self) -> anyhow::Result<()> {
        let told = *self.0.borrow();
        match told {
            None => Ok(()),
            Some(name) => bail!("interrupted by {name}; nothing is written"),
        }
    }

    /// Does something, but no further than until it is told.
    pub(super) async fn unless_told<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let mut heard = self.0.clone();
        let told = async {
            if heard.wait_for(Option::is_some).await.is_err() {
                // Nobody can tell it any more.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = told => {
                self.check()?;
                bail!("interrupted; nothing is written")
            }
            done = work => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_ends_with_the_wish_and_what_is_done_stays_done() {
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (tell, wish) = wish();
        let done = tokio.block_on(wish.unless_told(async { anyhow::Ok(7) }));
        assert_eq!((done.unwrap(), wish.check().is_ok()), (7, true));
        let hangs = async {
            tell.send(Some("SIGTERM")).unwrap();
            std::future::pending::<anyhow::Result<()>>().await
        };
        let error = tokio.block_on(wish.unless_told(hangs)).unwrap_err().to_string();
        assert!(wish.is_told() && error.contains("SIGTERM"), "{error}");
        let late = tokio.block_on(wish.unless_told(async { anyhow::Ok(7) }));
        assert!(late.is_err());
    }
}
