// The schemes of this program, in the order in which each place applies them.

#include "schemes/red/red.p4"
#include "schemes/fair_rate/fair_rate.p4"
#include "telemetry.p4"

#define ENTRY_CONTROLS
#define ENTRY

#define OFFERED_CONTROLS
#define OFFERED

#define ARRIVAL_CONTROLS RedArrival() red;
#define ARRIVAL red.apply(hdr, standard_metadata);

#define COPY_CONTROLS RedReplica() replica;
#define COPY replica.apply(hdr, standard_metadata);

#define DEPARTURE_CONTROLS
#define DEPARTURE

#define AFTER_CONTROLS RedDeparture() departure;
#define AFTER departure.apply(hdr, standard_metadata);

#define SENT_CONTROLS FairRate() fair_rate; Telemetry() telemetry;
#define SENT fair_rate.apply(hdr, standard_metadata); telemetry.apply(hdr, standard_metadata);
