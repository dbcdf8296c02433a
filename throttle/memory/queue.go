package memory

// A queue is a heap of entries, the one that is due first at its top. When each is due lies
// beside it here: so to move one looks at no other entry.
type queue[S any] []expiry[S]

type expiry[S any] struct {
	due   int64 // when to look whether the entry has expired: when it does, or earlier
	entry *entry[S]
}

// add adds an entry that is due then.
func (q *queue[S]) add(e *entry[S], due int64) {
	*q = append(*q, expiry[S]{due, e})
	q.up(len(*q) - 1)
}

// remove takes the i-th out.
func (q *queue[S]) remove(i int) {
	last := len(*q) - 1
	moved := (*q)[last]
	(*q)[last] = expiry[S]{}
	*q = (*q)[:last]
	if i < last {
		(*q)[i] = moved
		q.fix(i)
	}
}

// move makes the i-th due at another moment.
func (q queue[S]) move(i int, due int64) {
	q[i].due = due
	q.fix(i)
}

// fix moves the i-th to where it belongs.
func (q queue[S]) fix(i int) {
	if !q.down(i) {
		q.up(i)
	}
}

func (q queue[S]) up(i int) {
	moving := q[i]
	for i > 0 {
		above := (i - 1) / 2
		if q[above].due <= moving.due {
			break
		}
		q.put(i, q[above])
		i = above
	}
	q.put(i, moving)
}

// down reports whether it moved.
func (q queue[S]) down(i int) bool {
	moving, from := q[i], i
	for {
		below := 2*i + 1
		if below >= len(q) {
			break
		}
		if other := below + 1; other < len(q) && q[other].due < q[below].due {
			below = other
		}
		if q[below].due >= moving.due {
			break
		}
		q.put(i, q[below])
		i = below
	}
	q.put(i, moving)
	return i != from
}

func (q queue[S]) put(i int, x expiry[S]) {
	q[i] = x
	x.entry.place = int32(i)
}
