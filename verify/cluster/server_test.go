package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/verify"
)

const prefix = "mailgate:verify.codes:{}"

// By the server's clock a code lives as long as it was told, and no key stays for good.
func TestTheServersClock(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	book := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	const lifetime = 600
	before, _ := server.Client().Time(ctx).Result()
	add(t, book, "clock", verify.Hash{1}, lifetime)
	added, _ := server.Client().Time(ctx).Result()
	if at := server.Client().PExpireTime(ctx, prefix+"clock").Val().Milliseconds(); at < before.UnixMilli()+lifetime+1000 || at > added.UnixMilli()+lifetime+1000 {
		t.Errorf("the key goes at %d; the code was added between %d and %d", at, before.UnixMilli(), added.UnixMilli())
	}
	for {
		asked, _ := server.Client().Time(ctx).Result()
		result, err := book.Check(ctx, "clock", verify.Hash{2})
		answered, _ := server.Client().Time(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		if result == verify.Expired {
			if answered.UnixMilli() < before.UnixMilli()+lifetime {
				t.Error("expired too early")
			}
			break
		}
		if asked.UnixMilli() >= added.UnixMilli()+lifetime {
			t.Fatalf("%v after its end", result)
		}
	}
	if n := server.Client().Exists(ctx, prefix+"clock").Val(); n != 0 {
		t.Error("a mailbox without codes is still on record")
	}

	add(t, book, "used", verify.Hash{1}, minute*10)
	expect(t, book, "used", verify.Hash{1}, verify.Correct)
	if left := server.Client().PTTL(ctx, prefix+"used").Val(); left <= 0 || left > 61*time.Second {
		t.Errorf("the receipt of a code is kept for %v", left)
	}
}

// Redis has hashes, and nothing else that has to do with a code.
func TestRedisHasNoCode(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	book := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	hasher, err := verify.NewHasher([]byte("sixteen bytes of chance, or more"))
	if err != nil {
		t.Fatal(err)
	}
	var hashes [][]byte
	for _, code := range []string{"135790", "246802", "999999"} {
		h := hasher.Hash(verify.Recipient{Address: "alice@example.com"}, code)
		hashes = append(hashes, h[:])
		add(t, book, "alice", h, minute)
	}
	record, err := server.Client().Get(context.Background(), prefix+"alice").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if want := 22 * (1 + len(hashes)); len(record) != want {
		t.Errorf("%d bytes on record, want %d", len(record), want)
	}
	for _, h := range hashes {
		if !bytes.Contains(record, h) {
			t.Error("a hash is missing")
		}
		record = bytes.Replace(record, h, nil, 1)
	}
	for i := range 4 { // what is left are the receipt, which is none, and three moments
		if at := redisstore.BigEndian(string(record[:6])); i > 0 && (at < 1_700_000_000_000 || at > 1<<42) {
			t.Errorf("place %d has %d", i, at)
		}
		record = record[6:]
		if i == 0 {
			if !bytes.Equal(record[:16], make([]byte, 16)) {
				t.Errorf("a receipt of nothing: %x", record[:16])
			}
			record = record[16:]
		}
	}
	if len(record) > 0 {
		t.Errorf("more on record: %x", record)
	}
}

// A user who may read and nothing else can guess wrong, and no more.
func TestWrongGuessesOnlyRead(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	ctx := context.Background()
	rules := []any{"ACL", "SETUSER", "reader", "on", ">secret", "~*", "-@all", "+evalsha", "+eval", "+time", "+get"}
	if err := server.Client().Do(ctx, rules...).Err(); err != nil {
		t.Fatal(err)
	}
	writer := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	reader := open(t, redisstore.Options{URL: strings.Replace(server.URL(), "redis://", "redis://reader:secret@", 1), Timeout: patient})
	for n := range verify.MaxCodes {
		add(t, writer, "reader", verify.Hash{byte(n)}, minute)
	}
	record(t, writer, "reader", verify.Kept{Hash: verify.Hash{1}, Expires: time.Now().UnixMilli() + minute})
	for range 3 {
		expect(t, reader, "reader", verify.Hash{200}, verify.Incorrect)
		expect(t, reader, "nobody", verify.Hash{200}, verify.Expired)
		for _, mailbox := range []string{"reader", "nobody"} {
			if err := reader.Remove(ctx, mailbox, verify.Hash{200}); err != nil {
				t.Errorf("nothing to be removed: %v", err)
			}
		}
	}
	if err := reader.Remove(ctx, "reader", verify.Hash{1}); !errors.Is(err, verify.ErrUnavailable) {
		t.Errorf("a code that cannot be removed: %v", err)
	}
	if result, err := reader.Check(ctx, "reader", verify.Hash{1}); !errors.Is(err, verify.ErrUnavailable) || result == verify.Correct {
		t.Errorf("a code that cannot be forgotten: %v, %v", result, err)
	}
	expect(t, writer, "reader", verify.Hash{1}, verify.Correct)
}

func TestForeignValueIsAnError(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	book := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	for name, write := range map[string][]any{
		"another type":   {"ZADD", prefix + "foreign", "1", "x"},
		"a short string": {"SET", prefix + "foreign", "1"},
		"a cut record":   {"SET", prefix + "foreign", strings.Repeat("\x00", 43)},
	} {
		server.Client().Del(ctx, prefix+"foreign")
		if err := server.Client().Do(ctx, write...).Err(); err != nil {
			t.Fatal(err)
		}
		result, checked := book.Check(ctx, "foreign", verify.Hash{1})
		if result == verify.Correct {
			t.Errorf("%s: correct", name)
		}
		for call, err := range map[string]error{
			"check":  checked,
			"add":    book.Add(ctx, "foreign", verify.Hash{1}, minute),
			"remove": book.Remove(ctx, "foreign", verify.Hash{1}),
			"forget": book.Forget(ctx, "foreign"),
		} {
			if !errors.Is(err, verify.ErrUnavailable) {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
	}
}

// Books of two prefixes on one server are two, and a book is nobody's histories.
func TestPrefixesAreApart(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	one := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	two := open(t, redisstore.Options{URL: server.URL(), Prefix: "acme:", Timeout: patient})
	same := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	add(t, one, "a", verify.Hash{1}, minute)
	add(t, two, "a", verify.Hash{2}, minute)
	expect(t, two, "a", verify.Hash{1}, verify.Incorrect)
	expect(t, same, "a", verify.Hash{1}, verify.Correct)
	expect(t, one, "a", verify.Hash{1}, verify.Expired)
	keys := server.Client().Keys(context.Background(), "*").Val()
	if len(keys) != 2 || !strings.Contains(strings.Join(keys, " "), "acme:verify.codes:a") {
		t.Errorf("keys %q", keys)
	}
}
