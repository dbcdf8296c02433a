# `make` alone lists the targets.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
FUZZTIME ?= 10m
AT_ONCE ?= 1
FOR     ?= 30m
BIN      = bin/mailgate

.PHONY: help dev build test needs vet program check vulnerabilities race campaign firefox long faults soak fuzz bench pictures image release-check clean

help: ## prints this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: ## runs mailgate with a sign-up page, an inbox and a console; nothing to set up
	$(GO) run ./cmd/mailgate dev

build: ## builds bin/mailgate, one static program
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN) ./cmd/mailgate

# What vet compiles serves staticcheck and the tests, too. Staticcheck uses the processors while tests wait.
test: needs ## installs what is missing, checks and tests everything with -race, in minutes
	@$(MAKE) --no-print-directory -j 2 vet program
	@$(MAKE) --no-print-directory -j 2 check race
	@$(MAKE) --no-print-directory campaign

needs: # the programs that tests start, such as redis-server
	.ci/needs

# With a heap four times as large they take a fifth less of the processors.
vet program check: export GOGC = 400

vet:
	$(GO) vet $(RACE) ./...
	cd bench && $(GO) vet $(RACE) ./...

program: # that tests start
	$(GO) build -o /dev/null ./cmd/mailgate

check: # format, staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi
	staticcheck=$$($(GO) tool -n staticcheck) && export GOFLAGS="$$($(GO) env GOFLAGS) $(RACE)" && $$staticcheck ./... && cd bench && $$staticcheck ./...

vulnerabilities: ## looks for known vulnerabilities, where their database can be reached
	.ci/vulnerabilities

# A missing program is a failure where everything must run.
race firefox long campaign faults soak: export MAILGATE_TEST_ALL = 1

# The race detector leaves out SQLite's translated C, which takes half the time and which one goroutine calls, and the
# second that it waits at the end of each process.
RACE = -race -gcflags=modernc.org/...=-race=false
race long: export GORACE = atexit_sleep_ms=0

# Many tests wait more than they compute, so four packages with four tests each share two cores well.
race:
	$(GO) test $(RACE) -vet=off -ldflags '-s -w' -p 4 -parallel 4 -timeout 12m ./...

# What has no race detector: the model of an outage, and each kind of fault once, for two seconds. Kinds that are much like
# another are in the longer runs alone.
campaign:
	$(GO) test -vet=off -count 1 -run '^TestModel_' ./internal/standby
	$(GO) test -vet=off -count 1 -parallel 8 -skip '/^(relay-silent-(banner|ehlo)|relay-drip|redis-killed-refuse|flood-(pages|countdown))$$' ./internal/faults -seeds 1

firefox: ## tests all flows of the pages in Firefox too
	.ci/needs firefox
	MAILGATE_TEST_LONG=1 $(GO) test -count 1 -timeout 20m ./api/web

long: vulnerabilities ## tests with long random histories and races, also those of bench, and builds for macOS and Windows
	.ci/needs long
	cd bench && $(GO) test ./...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/mailgate
	MAILGATE_TEST_LONG=1 $(GO) test $(RACE) -timeout 60m ./...
	$(GO) test $(RACE) -count 1 -parallel 8 -timeout 60m ./internal/faults -seeds 4

# The programs have no race detector here, so that the load is heavy and their memory is
# what users see. `make long` has it.
faults: needs ## causes every kind of fault under load, 20 to 50 times, in an hour and a half
	$(GO) test -v -count 1 -parallel 6 -timeout 4h ./internal/faults -full -seeds 20

soak: needs ## causes random faults for FOR (30m), and checks that memory stays level
	$(GO) test -v -count 1 -timeout 0 ./internal/faults -run TestSoak -for $(FOR)

fuzz: ## runs every fuzz target for FUZZTIME (10m), AT_ONCE (1) of them side by side
	FUZZTIME=$(FUZZTIME) AT_ONCE=$(AT_ONCE) .ci/fuzz

bench: ## measures mailgate beside other programs and libraries, in minutes
	cd bench && $(GO) run .

pictures: ## draws the pictures of the README from the real pages, and that of the dashboard
	MAILGATE_TEST_ALL=1 $(GO) test ./api/web -run TestReadme_Pictures_Drawn -count 1 -pictures
	MAILGATE_TEST_ALL=1 MAILGATE_TEST_LONG=1 $(GO) test ./cmd/mailgate -run TestDashboard -count 1 -pictures

image: ## builds the container image mailgate:latest
	docker build --build-arg VERSION=$(VERSION) -t mailgate .

release-check: ## builds a release without publishing it, and tries its deb under systemd and its image; needs root
	.ci/needs release
	.ci/release-check

clean: ## removes bin
	rm -rf bin
