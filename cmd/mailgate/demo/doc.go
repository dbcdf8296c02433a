// Package demo is the sign-up form of "mailgate dev": a small back end that uses
// mailgate the way any back end does, over HTTP with an api key, and the pages for it.
//
// [Client] asks mailgate, as client does for a back end of yours. [New] makes the pages and what
// is behind them: the sign-up has a code mailed, and has checked what the visitor types;
// what mailgate answers goes to the browser as it is, so that the page can show the
// countdown. The inbox shows the mails that the throw-away relay was given.
//
// It is made for one person on one machine: it serves loopback names only, so that no
// page from elsewhere can reach it through the visitor's browser.
package demo
