package local

import (
	"context"
	"net/url"
	"sync"
	"unsafe"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// A sharedMap is a cache.Map that is counted in under several names. Each name has a
// part of the keys, and what its keys begin with tells them from those of the others.
type sharedMap[V any] struct {
	*cache.Map[V]
	joined sync.Pool // of *[]byte, to put keys together in that are only asked for
}

// openMap opens the map of this name on the disk; no size is cache.DefaultSize.
func openMap[V any](disk *cache.Disk, name string, codec cache.Codec[V], size cache.Size) (*sharedMap[V], error) {
	if size == (cache.Size{}) {
		size = cache.DefaultSize()
	}
	m, err := cache.NewMap(disk, name, codec, size)
	if err != nil {
		return nil, err
	}
	return &sharedMap[V]{Map: m}, nil
}

// nameInKey is the name as keys have it: without NUL and slash, whatever is in it, so
// that either can come after it. Names that pass throttle.CheckName stay as they are.
func nameInKey(name string) string { return url.PathEscape(name) }

// recall is cache.Map.Recall, and takes no memory for the key.
func (m *sharedMap[V]) recall(part, key string, now int64) (V, bool) {
	joined := m.join(part, key)
	value, found := m.Recall(asString(*joined), now)
	m.joined.Put(joined)
	return value, found
}

// glance is cache.Map.Glance, and takes no memory for the key.
func (m *sharedMap[V]) glance(part, key string, now int64) (cache.Brief, V, bool) {
	if part == "" {
		return m.Glance(key, now)
	}
	joined := m.join(part, key)
	brief, value, found := m.Glance(asString(*joined), now)
	m.joined.Put(joined)
	return brief, value, found
}

// join puts a key together, in bytes that are to be put back.
func (m *sharedMap[V]) join(part, key string) *[]byte {
	joined, _ := m.joined.Get().(*[]byte)
	if joined == nil {
		room := make([]byte, 0, len(part)+throttle.MaxKey)
		joined = &room
	}
	*joined = append(append((*joined)[:0], part...), key...)
	return joined
}

// asString is for who only asks. A map keeps no keys, and nothing of one that was asked for,
// so the bytes stay as they are for as long as anybody reads them as a string.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// get is cache.Map.Get.
func (m *sharedMap[V]) get(ctx context.Context, part, key string, clock func() int64) (V, bool, int64, error) {
	if part != "" {
		now := clock()
		if value, found := m.recall(part, key, now); found {
			return value, true, now, nil
		}
	}
	return m.Get(ctx, part+key, clock)
}

// update is cache.Map.Update.
func (m *sharedMap[V]) update(ctx context.Context, part, key string, clock func() int64, edit func(value V, found bool, now int64) cache.Edit[V]) error {
	return m.Update(ctx, part+key, clock, edit)
}
