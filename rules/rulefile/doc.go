// Package rulefile reads the file in which operators write their rules:
//
//	rules:
//	  - name: mailbox
//	    exempt: {mailboxes: ["e2e-*@acme.example"]}
//	  - name: provider
//	    by: all
//	    algorithm: fixed-window
//	    limit: day=50000/24h
//	    keep_for_first_sends: 5000
//	actions:
//	  - name: reply
//	    limit: minute=10/60s,hour=100/1h
//
// A rule decides about sends, together with all others; an action is a limit of its own
// for whatever a caller wants to count. Two rules are there without being written down,
// mailbox and client-ip: see [Default]. A file that names one of them changes what it
// says of it, and nothing else.
//
// What cannot be right is one sentence that names the file's line, the rule and the
// part of it. No error repeats an address.
//
// A [File] is data: what counts where is for those who have the stores. [Compare] says
// what is different in a later file, and for which rules nothing on record counts any
// more; [File.Digest] whether several processes go by the same.
package rulefile
