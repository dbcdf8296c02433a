package throttletest

import (
	"slices"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// OpenMeter returns a limiter that counts by the meter and reads the time from now. It
// may share its store with others: the suite names every key anew.
//
// All limiters that are opened for one t come with the same clock, and are views of one
// name on one store: those with meters of one form share what is on record. [OneStore]
// makes an OpenMeter that is so.
type OpenMeter func(t testing.TB, m meter.Meter, now func() int64) throttle.Limiter

// OneStore is the OpenMeter that opens one store for each t, and on it a view for each
// meter.
func OneStore(open func(t testing.TB, now func() int64) (view func(meter.Meter) throttle.Limiter)) OpenMeter {
	var lock sync.Mutex
	stores := map[testing.TB]func(meter.Meter) throttle.Limiter{}
	return func(t testing.TB, m meter.Meter, now func() int64) throttle.Limiter {
		lock.Lock()
		defer lock.Unlock()
		view, found := stores[t]
		if !found {
			view = open(t, now)
			stores[t] = view
		}
		return view(m)
	}
}

// RunMeters checks a store of meters against the contract, each algorithm for itself,
// and walks each through random lives for that many steps.
func RunMeters(t *testing.T, open OpenMeter, steps int) { runMeters(t, open, steps, algorithms[:]) }

// RunMetersAgain is RunMeters for another way to what passes it elsewhere: under -short one
// window and one bucket count to some of a million, which takes longest.
func RunMetersAgain(t *testing.T, open OpenMeter, steps int) {
	counting := algorithms[:]
	if testing.Short() {
		counting = []string{slidingWindow, tokenBucket}
	}
	runMeters(t, open, steps, counting)
}

func runMeters(t *testing.T, open OpenMeter, steps int, toAMillion []string) {
	for seed, algorithm := range algorithms {
		t.Run(algorithm, func(t *testing.T) {
			for _, part := range meterContract {
				if part.of == "" || part.of == algorithm {
					t.Run(part.name, func(t *testing.T) { part.check(t, open, algorithm) })
				}
			}
			if slices.Contains(toAMillion, algorithm) {
				t.Run("a million", func(t *testing.T) { aMillion(t, open, algorithm) })
			}
			t.Run("random lives", func(t *testing.T) { strollWithMeter(t, open, algorithm, uint64(seed+1), steps) })
		})
	}
}

// meterContract is what holds of every algorithm, or of one.
var meterContract = []struct {
	name  string
	check func(t *testing.T, open OpenMeter, algorithm string)
	of    string
}{
	{"first send", firstMetered, ""},
	{"denial changes nothing", meteredDenialChangesNothing, ""},
	{"edges of every wait", meteredEdges, ""},
	{"take is idempotent", meteredTakeIsIdempotent, ""},
	{"release", meteredRelease, ""},
	{"release of what is gone", meteredReleaseOfWhatIsGone, ""},
	{"reset", meteredReset, ""},
	{"keys are apart", meteredKeysAreApart, ""},
	{"clock steps back", meteredClockStepsBack, ""},
	{"ended context", meteredContext, ""},
	{"bad arguments", meteredArguments, ""},
	{"race for one key", raceForOneKey, ""},
	{"record in order", meteredRecordInOrder, ""},
	{"record in any order", meteredRecordInAnyOrder, ""},
	{"record is idempotent", meteredRecordIsIdempotent, ""},
	{"record what will not do", meteredRecordWhatWillNotDo, ""},
	{"race to record", raceToRecordMetered, ""},
	{"one keeps the rest for others", reservingViews, ""},
	{"turns in the queue", turnsInTheQueue, leakyBucket},
	{"vacant places in the queue", vacantPlaces, leakyBucket},
}
