package memory

// A queue is a heap of entries, the one that is due first at its top.
type queue[S any] []*entry[S]

// Len implements heap.Interface.
func (q queue[S]) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue[S]) Less(i, j int) bool { return q[i].due < q[j].due }

// Swap implements heap.Interface.
func (q queue[S]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = int32(i), int32(j)
}

// Push implements heap.Interface.
func (q *queue[S]) Push(e any) {
	last := e.(*entry[S])
	last.place = int32(len(*q))
	*q = append(*q, last)
}

// Pop implements heap.Interface.
func (q *queue[S]) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
