package outage

import (
	"errors"
	"sync/atomic"
)

// mostOwed is how many bytes of memory the debts may take, about: those of 300,000 sends
// with a code. What would be one more is refused, as when the disk does not take it.
const mostOwed = 256 << 20

// errTooMuch is why a debt cannot be noted.
var errTooMuch = errors.New("this node has done as much alone as it can remember")

// A bound is how much is owed, and how much may be.
type bound struct {
	most  int64
	bytes atomic.Int64
	met   atomic.Bool // something was refused, and there is hardly room yet
	tell  func()      // that something is refused
}

// admits reports whether there is room for one more. What ends something has more room than
// what begins it: a place can be given back, and a code used up, where nothing is admitted.
func (b *bound) admits(s step) bool {
	most := b.most
	if s != record && s != add && s != begin {
		most += most / 8
	}
	if b.bytes.Load() < most {
		return true
	}
	if b.met.CompareAndSwap(false, true) {
		b.tell()
	}
	return false
}

// add is so many bytes more, or less.
func (b *bound) add(bytes int64) {
	if b.bytes.Add(bytes) < b.most-b.most/8 && b.met.Load() {
		b.met.Store(false)
	}
}

// What a holder and each of its debts take, as measured: the maps, and the texts.
const (
	holderBytes = 280
	debtBytes   = 120
)

func ofHolder(holder string) int64 { return holderBytes + int64(len(holder)) }

func ofDebt(d debt) int64 { return debtBytes + int64(len(d.what)+len(d.more)) }
