package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// The server's clock decides and no other: it is a day away from this machine's.
func TestServerClockDecides(t *testing.T) {
	server, set := redistest.WithClock(t)
	for name, ahead := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -24 * time.Hour} {
		set(ahead)
		limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
		for i, way := range waysToThree(limiter) {
			before, _ := server.Client().Time(context.Background()).Result()
			taken := take(t, way, name, throttle.NewID())
			seen, err := way.Peek(context.Background(), name)
			after, _ := server.Client().Time(context.Background()).Result()
			if !taken.Allowed || err != nil || taken.Now < before.UnixMilli() || seen.Now < taken.Now || seen.Now > after.UnixMilli() {
				t.Errorf("%s, way %d: allowed %v at %d, seen at %d, %v; the server's clock went from %d to %d",
					name, i, taken.Allowed, taken.Now, seen.Now, err, before.UnixMilli(), after.UnixMilli())
			}
		}
		if v := take(t, limiter, name, throttle.NewID()); v.Allowed || v.Wait <= 0 || v.Wait > 60_000 {
			t.Errorf("%s, second take: allowed %v, wait %d", name, v.Allowed, v.Wait)
		}
	}
}

// However many take at once, what they ask shares connections.
func TestManyShareFewConnections(t *testing.T) {
	const many, few = 256, 4
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	limiter := openWith(t, threeAMinute, redisstore.Options{URL: proxy.URL(), Timeout: patient})
	for i, way := range waysToThree(limiter) {
		if admitted := throttletest.Race(t, way, mailboxOf("many"), many); admitted != 3 {
			t.Errorf("way %d: %d admitted, want 3", i, admitted)
		}
	}
	if n := proxy.Counts().Connections; n > few {
		t.Errorf("%d callers at once took %d connections", many, n)
	}
}

// A user who may read and nothing else can be denied, and can look.
func TestDenialAndPeekOnlyRead(t *testing.T) {
	server := redistest.Alone(t)
	ctx := context.Background()
	rules := []any{"ACL", "SETUSER", "reader", "on", ">secret", "~*", "-@all", "+evalsha", "+eval", "+time", "+zrange", "+get", "+getrange"}
	if err := server.Client().Do(ctx, rules...).Err(); err != nil {
		t.Fatal(err)
	}
	clock := clocktest.New(1_800_000_000_000)
	ways := func(url string) []throttle.Limiter {
		return waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: url, Clock: clock.Now, Timeout: patient}))
	}
	for _, writer := range ways(server.URL()) {
		full(t, writer, "reader")
	}
	before := everything(t, server)
	for i, reader := range ways(strings.Replace(server.URL(), "redis://", "redis://reader:secret@", 1)) {
		if v := take(t, reader, "reader", throttle.NewID()); v.Allowed {
			t.Errorf("way %d: admitted a fourth send", i)
		}
		if v, err := reader.Peek(ctx, "reader"); err != nil || v.Allowed {
			t.Errorf("way %d: peek: allowed %v, %v", i, v.Allowed, err)
		}
		if _, err := reader.Take(ctx, "other", throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) {
			t.Errorf("way %d: an admission without the right to write: %v", i, err)
		}
	}
	if after := everything(t, server); len(before) != 1+len(threeMeters) || !maps.Equal(before, after) {
		t.Errorf("a denial changed what redis holds\nfrom %q\n  to %q", before, after)
	}
}

// everything is what a server holds under each key, and until when.
func everything(t *testing.T, server *redistest.Server) map[string]string {
	t.Helper()
	ctx, all := context.Background(), map[string]string{}
	for _, key := range server.Client().Keys(ctx, "*").Val() {
		dump, until := server.Client().Dump(ctx, key).Val(), server.Client().PExpireTime(ctx, key).Val()
		if dump == "" || until <= 0 {
			t.Fatalf("%q is not there, or for ever: %v", key, until)
		}
		all[key] = fmt.Sprint(dump, until)
	}
	return all
}

func TestKeysExpireWithTheLongestWindow(t *testing.T) {
	server := redistest.Alone(t)
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	mailbox := mailboxOf("expiry")
	v := take(t, limiter, mailbox, throttle.NewID())
	at := server.Client().PExpireTime(context.Background(), "mailgate:{}"+mailbox).Val().Milliseconds()
	if late := at - (v.Now + 86_400_000); late < 1000 || late > 1500 {
		t.Errorf("the key expires %d ms after its send has left the longest window", late)
	}
}

// What has left every window goes when the next send is recorded, so that a mailbox
// never holds more sends than its longest tier allows.
func TestHistoryStaysBounded(t *testing.T) {
	server := redistest.Alone(t)
	clock := clocktest.New(1_800_000_000_000)
	limiter := open(t, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient})
	mailbox := mailboxOf("bounded")
	for range 300 {
		clock.Set(take(t, limiter, mailbox, throttle.NewID()).RetryAt())
		if n := server.Client().ZCard(context.Background(), "mailgate:{}"+mailbox).Val(); n > 10 {
			t.Fatalf("%d sends on record", n)
		}
	}
}

// 10 sends to a 20-character address cost at most 320 bytes, the key included.
func TestMemoryOfAMailbox(t *testing.T) {
	server := redistest.Alone(t)
	clock := clocktest.New(1_800_000_000_000)
	limiter := open(t, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient})
	const mailbox = "somebody@example.com"
	for range 10 {
		admit(t, limiter, mailbox)
		clock.Add(3_600_000)
	}
	if bytes := server.Client().MemoryUsage(context.Background(), "mailgate:{}"+mailbox).Val(); bytes > 320 {
		t.Errorf("%d bytes", bytes)
	}
}

func TestForeignValueIsAnError(t *testing.T) {
	server := redistest.Alone(t)
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	for name, write := range map[string][]any{
		"a string":               {"SET", "mailgate:{}foreign", "1"},
		"members of other bytes": {"ZADD", "mailgate:{}foreign", "1", "x"},
		"members without an id":  {"ZADD", "mailgate:{}foreign", "1", "\x00\x00\x00\x00\x00\x00        "},
	} {
		server.Client().Del(ctx, "mailgate:{}foreign")
		if err := server.Client().Do(ctx, write...).Err(); err != nil {
			t.Fatal(err)
		}
		if v, err := limiter.Peek(ctx, "foreign"); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
			t.Errorf("%s: peek says %v, %v", name, v.Allowed, err)
		}
		if v, err := limiter.Take(ctx, "foreign", throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
			t.Errorf("%s: take says %v, %v", name, v.Allowed, err)
		}
	}
}

// Redis repeats the words of a command that it does not know.
func TestErrorsDoNotNameTheMailbox(t *testing.T) {
	server := redistest.Alone(t, "rename-command EVALSHA hidden")
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	_, err := limiter.Take(context.Background(), "alice@example.com", throttle.NewID())
	if err == nil || strings.Contains(err.Error(), "alice") || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("%v", err)
	}
}

// The 8 characters of an id may stand anywhere in what the script reads: across the
// border of two sends, or in the digits of the clock.
func TestAnIDIsFoundOnlyInItsPlace(t *testing.T) {
	clock := clocktest.New(0x01a3_61626364) // the last four bytes are "abcd"
	limiter := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Clock: clock.Now, Timeout: patient})
	mailbox := mailboxOf("place")
	known, _ := throttle.ParseID("ABCDEFGH")
	if !take(t, limiter, mailbox, known).Allowed {
		t.Fatal("not admitted")
	}
	digits := fmt.Sprintf("%d%d", clock.Now()/1000, clock.Now()%1000*1000)
	for _, text := range []string{"abcdABCD", "bcdABCDE", "cdABCDEF", "dABCDEFG", "BCDEFGH" + digits[:1], digits[:8], digits[3:11], digits[len(digits)-8:]} {
		id, err := throttle.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		if take(t, limiter, mailbox, id).Allowed {
			t.Errorf("id %s: admitted on a full mailbox", text)
		}
	}
	if !take(t, limiter, mailbox, known).Allowed {
		t.Error("the id on record is not found")
	}
	// Found at the second place where its characters stand, also if that is the next.
	for now, other := range map[int64]string{0x01a3_41424344: "ABCDABCD", 0x01a3_61626341: "AAAAAAAA"} {
		limiter.Reset(context.Background(), mailbox)
		clock.Set(now)
		other := throttle.ID([]byte(other))
		if !take(t, limiter, mailbox, other).Allowed || !take(t, limiter, mailbox, other).Allowed {
			t.Errorf("%s on record is not found behind a place that looks like it", other)
		}
	}
}

// Whatever a mailbox is called, asking whether redis is ready changes nothing about it.
func TestReadyChargesNobody(t *testing.T) {
	server, ctx := redistest.Alone(t), context.Background()
	store := openStore(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	limiter, err := cluster.New(store, throttle.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	mailboxes := []string{"ready", "\x00", "\x00trial0", "redisstore.trial:{}0", "0"}
	for _, allowed := range []bool{true, false} {
		if err := store.Ready(ctx); err != nil {
			t.Error(err)
		}
		for _, mailbox := range mailboxes {
			if v, err := limiter.Take(ctx, mailbox, throttle.NewID()); v.Allowed != allowed || err != nil {
				t.Errorf("%q: allowed %t, %v", mailbox, v.Allowed, err)
			}
		}
	}
}

func TestOutOfMemoryIsAnErrorForAdmissionsAlone(t *testing.T) {
	server := redistest.Alone(t)
	clock := clocktest.New(1_800_000_000_000)
	ways := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient}))
	for _, way := range ways {
		full(t, way, "known")
	}
	ctx := context.Background()
	server.Client().ConfigSet(ctx, "maxmemory", strconv.Itoa(1<<20))
	for i, way := range ways {
		if v, err := way.Take(ctx, "new", throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
			t.Errorf("way %d: an admission without memory: allowed %v, %v", i, v.Allowed, err)
		}
		if v, err := way.Take(ctx, "known", throttle.NewID()); err != nil || v.Allowed {
			t.Errorf("way %d: a denial without memory: allowed %v, %v", i, v.Allowed, err)
		}
	}
	server.Client().ConfigSet(ctx, "maxmemory", "0")
	for _, way := range ways {
		full(t, way, "new")
	}
}
