/* Two-sided geometric noise in C as a subject of dpaudit: no JSON library is needed for so small a part of JSON.

       cc -O2 -o geometric docs/examples/exec/geometric.c -lm
       dpaudit audit "exec:./geometric" --claim eps=1 --pairs 0,1

   The input is a whole number. An argument is the epsilon of the noise, 1 by default; "hex" as a second argument
   sends doubles of Laplace noise in hexadecimal form instead, bit by bit. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t word(void) { /* splitmix64 */
    uint64_t mixed = (state += 0x9e3779b97f4a7c15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

static double uniform(void) { /* in (0, 1) */
    return ((double)(word() >> 11) + 0.5) / 9007199254740992.0;
}

/* The number behind "name": in a request that dpaudit wrote; such names occur in no number. */
static long long field(const char *line, const char *name) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *found = strstr(line, quoted);
    return found ? strtoll(found + strlen(quoted), NULL, 10) : 0;
}

int main(int argc, char **argv) {
    double epsilon = argc > 1 ? atof(argv[1]) : 1.0;
    int hex = argc > 2 && strcmp(argv[2], "hex") == 0;
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        if (strstr(line, "\"hello\"")) {
            puts("{\"type\":\"hello\",\"protocol\":1,\"name\":\"geometric.c\",\"seeds\":true,\"batch\":50000}");
            fflush(stdout);
            continue;
        }
        long long input = field(line, "input"), size = field(line, "size");
        state = (uint64_t)field(line, "seed");
        printf("{\"id\":%lld,\"%s\":[", field(line, "id"), hex ? "hex" : "outputs");
        for (long long k = 0; k < size; k++) {
            if (hex) {
                printf("%s\"%a\"", k ? "," : "", (double)input + (log(uniform()) - log(uniform())) / epsilon);
            } else { /* the difference of two geometric numbers */
                long long above = (long long)floor(log(uniform()) / -epsilon);
                long long below = (long long)floor(log(uniform()) / -epsilon);
                printf("%s%lld", k ? "," : "", input + above - below);
            }
        }
        puts("]}");
        fflush(stdout);
    }
    return 0;
}
