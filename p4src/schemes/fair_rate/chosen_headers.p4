// The headers of data packets that this program's schemes read and write, and the parser's states for them.

#define AFTER_UDP accept
#define DATA_HEADERS
#define DATA_CASES
#define DATA_STATES
#define DATA_EMITS
