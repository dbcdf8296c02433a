// Package countdown makes the tokens that a browser may hold to ask how long a mailbox
// still has to wait.
//
// A browser that shows a countdown has to be able to ask again: after a reload, after
// sleep, in another tab. It must not be given an API key, and a mail address has no
// place in a URL. So an answer to a send carries a token, and any holder of the token
// back is told the wait of that one mailbox and nothing else:
//
//	tokens, err := countdown.New(secret)
//	…
//	token := tokens.Seal(mailboxKey, now+window)   // into the answer
//	…
//	key, err := tokens.Open(token, now)            // from GET /countdown/{token}
//
// A token gives next to nothing away. It is encrypted and authenticated, and new each
// time: a reader of two tokens cannot tell whether they are the same mailbox's. It is
// padded to steps of 64 bytes, so that of the length of what is in it only the step shows:
// up to 54 bytes are the first. Package api puts beside the mailbox what else rules know of
// the send, which are the names of its caller and its template and the visitor's address,
// so that with a long address, or of IPv6, it can be a step longer.
// A holder of a token can neither read it, nor change it, nor make another, nor learn
// why one is refused.
//
// It is a bearer's token: who has it may look until it expires. It can do no more than
// look, so it may stand in a URL, in a page and in a browser's storage.
//
// # How many tokens one secret can make
//
// AES-GCM with random nonces of 96 bits is good for 2^32 tokens under one key, fifty
// days at a thousand a second; beyond, a nonce might come up twice, and with that the
// key that authenticates would be lost. So each token is sealed under a key of its own,
// taken from the secret's key and the first half of a nonce of 192 bits, as
// XAES-256-GCM specifies. With that, 2^80 tokens of one secret leave the chance of any
// repetition at 2^-32, and no server needs to count them or to know of the others.
//
// A token is as good as its secret: guessing the secret must be hopeless. 16 bytes of
// chance, or more, are. A passphrase of 16 letters is not, since every token lets its
// holder try guesses at leisure.
package countdown
