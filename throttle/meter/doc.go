// Package meter is the classic ways to count sends, beside the exact tiers of a
// throttle.Policy: [FixedWindow], [SlidingWindow], [TokenBucket] and [LeakyBucket].
//
// Each is a [Meter]: pure steps on a small [State] that says what is on record of one key.
// A meter reads no clock and keeps nothing. Package throttle/memory keeps states in the
// process, throttle/local also on its disk, throttle/cluster in Redis; all of them say no
// without a change, charge one id once for as long as its send counts, and take back what
// certainly never left.
//
// # Which one
//
// With a limit L in a window W:
//
//	                 lets through in any W    a state is       natural place
//	throttle.Policy  L, exactly               each send        a mailbox: few sends, several tiers,
//	                                                           a countdown that is right
//	SlidingWindow    L; one may wait longer,  a number a part  a visitor's address: many keys,
//	                 by less than a part                       large limits, no edge to wait for
//	FixedWindow      2 L across an edge       a number         a provider's quota, which is counted
//	                                                           by the calendar as well
//	TokenBucket      L and the burst          two numbers      a caller: steady, with bursts
//	LeakyBucket      L and the queue,         two numbers      the pace to a relay: none is
//	                 leaving one by one                        refused while the queue has room
//
// All of them also remember admissions by id, 16 bytes each and [MaxHeld] at most, to
// charge a repeated Take once and to take sends back. That is most of what a busy key
// costs. What is only counted, without an id, as throttle/memory can, leaves a key as small as
// with one send, but for the parts of a SlidingWindow.
//
// Bytes for one key, an IPv4 address under a limit of 60 in an hour, as measured in
// throttle/memory, with thousands of keys, and by MEMORY USAGE of Redis 7, all included. There
// the limit's name is part of each key; this is for one of eight letters:
//
//	                 one send on record      60 sends on record
//	                 process     Redis       process     Redis
//	throttle.Policy      173       120          1403      1368
//	SlidingWindow        256       152          1894      1384
//	FixedWindow          255       136          1380      1000
//	TokenBucket          257       152          1384      1000
//	LeakyBucket          257       152          1385      1000
//
// A limit of a million costs no more than one of a thousand. A decision takes a fraction
// of a microsecond, whichever: none looks at more than the ids that are remembered, and a
// SlidingWindow at its parts. In throttle/memory a key that has come to remember more than 64
// has an index of them until they are fewer than 8, and costs up to 55 bytes for each while
// all of them count; then its decisions take no longer the more there are. In Redis that is
// so from 256 on, where a key takes 8 to 57 KB.
//
// # The edge
//
// Five in a minute. Five are asked for just before a minute of the clock ends and five
// just after, then one each four seconds. A column is two seconds, a number how many leave:
//
//	                      edge                          edge
//	asked           .....55.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.
//	throttle.Policy .....5..............................1.1.1.1.1.
//	SlidingWindow   .....5..............................1.1.1.1.1.
//	FixedWindow     .....55.............................1.1.1.1.1.
//	TokenBucket     .....5......1.....1.....1.....1.....1.....1...
//	LeakyBucket     .....1.....1.....1.....1.....1.....1.....1....
//
// The fixed window lets ten through in two seconds. The policy and the sliding window wait
// until the five before have left. The token bucket gives one back each twelve seconds,
// and the leaky bucket lets the same five go, one at a time.
//
// # A clock that steps back
//
// The newest send on record counts as the moment, in a FixedWindow the beginning of its
// window, in a SlidingWindow that of its part. So no window reopens and none grows, and
// what a verdict says of the moment to retry stays true.
//
// # Sends that are recorded late
//
// What processes have admitted each for itself is put on record later, by [Record], and
// others may have been recorded or admitted since. It counts as of its own time all the same:
//
//   - In a window whether or not there was room, as it has been sent: in a SlidingWindow in the
//     part of its time, and not at all where that has left. So the order in which sends are told
//     is nothing to the result.
//   - In a bucket as if it had been there since, so that what has drained by now has; but not
//     where it does not fit, then or later: full is full. In any order the result is that of the
//     order of time: the same where all fit, and where some did not to less than one send.
//
// That of a bucket is so as far back as it is remembered what came when, which is MaxHeld sends,
// and until Take has admitted one to a bucket that was empty. Before that it is:
//
//   - Where it was empty then, it is taken to have been empty before, but for the others that are
//     recorded late. So no more is in it than in the order of time, and no less than is left of
//     any one process's sends. N processes, then, have admitted N times what the bucket has room
//     for and drains, and no more.
//   - Where it was not, a send from before is whole then, unless that is longer ago than a full
//     bucket takes to drain: then it is not counted.
//
// What is late by a second at most, with nothing after it, is recorded as Take would.
package meter
