# What people do here, one target each. `make` alone lists them.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
FUZZTIME ?= 10m
AT_ONCE ?= 1
BIN      = bin/mailgate

.PHONY: help dev build test needs check race long flood campaign fuzz bench faults soak image clean

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: ## mailgate on this machine, nothing to set up: sign-up page, inbox, real API
	$(GO) run ./cmd/mailgate dev

build: ## the program, static, in bin/mailgate
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN) ./cmd/mailgate

test: needs check race flood campaign ## everything that must hold: format, vet, the bench module's tests, all tests with -race

needs: # what the tests start themselves, such as a Redis server
	.ci/needs

check:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	cd bench && $(GO) vet ./... && $(GO) test ./...

# Many tests wait more than they work, so four packages share two cores well.
race:
	$(GO) test -race -short -p 4 -timeout 12m ./...

long: needs ## all tests once more, with races and random histories at their full length
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/mailgate
	MAILGATE_TEST_LONG=1 $(GO) test -race -timeout 60m ./...

# So many mailboxes that the race detector alone would take minutes for them, or that it
# would change what is remembered of them.
flood:
	$(GO) test -run 'TestAFlood|TestMoreWritersThanTheQueueHolds|TestDefaultSizeHolds|TestWhatIsReadOftenStays' ./throttle/local ./cache

# Each kind of fault twice, for two seconds. Those that overload the machine come first, one at a time.
campaign:
	$(GO) test ./faults -run TestCampaign -seeds 2 -at-once 14

fuzz: ## every fuzz target for FUZZTIME (10m) each, AT_ONCE (1) of them side by side
	FUZZTIME=$(FUZZTIME) AT_ONCE=$(AT_ONCE) .ci/fuzz

# Without the race detector: the programs as people run them, so that the load is heavy and
# their memory is their own. The tests of `make long` have it in them.
# One run again: go test -v ./faults -run TestCampaign -full -kind redis-killed -seed 7
faults: needs ## every kind of fault under load, 20 times each (overloads 50), judged by what the relays received
	$(GO) test -v -count 1 -timeout 4h ./faults -run TestCampaign -full -seeds 20 -at-once 6

FOR ?= 30m

# Without the race detector, which takes more memory the longer it looks.
soak: needs ## faults at random, and is the memory flat in the end (FOR=30m)
	$(GO) test -v -count 1 -timeout 0 ./faults -run TestSoak -for $(FOR)

bench: ## mailgate beside other programs and libraries, and what is required of it (minutes)
	cd bench && $(GO) run .

image: ## the container image mailgate:latest
	docker build --build-arg VERSION=$(VERSION) -t mailgate .

clean: ## remove what was built
	rm -rf bin
