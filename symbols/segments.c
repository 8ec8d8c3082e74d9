#include "symbols/segments.h"

bool segments_read(struct segments *s, Elf *elf)
{
    size_t n;
    s->n = 0;
    if (elf_getphdrnum(elf, &n) != 0 || n > SEGMENTS_MAX) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr *header = &s->at[s->n];
        if (gelf_getphdr(elf, (int)i, header) != NULL && header->p_type == PT_LOAD) {
            s->n++;
        }
    }
    return s->n > 0;
}

static bool is_code(const GElf_Phdr *h)
{
    return (h->p_flags & PF_X) != 0;
}

/* Two segments can share a page of the file, so code goes first. */
static const GElf_Phdr *segment_at(const struct segments *s, uint64_t offset)
{
    const GElf_Phdr *found = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const GElf_Phdr *h = &s->at[i];
        if (offset >= h->p_offset && offset - h->p_offset < h->p_filesz &&
            (found == NULL || (is_code(h) && !is_code(found)))) {
            found = h;
        }
    }
    return found;
}

/* Returns true if no segment of code has all of its bytes in the file. */
static bool has_lost_places(const struct segments *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (is_code(&s->at[i]) && s->at[i].p_filesz == s->at[i].p_memsz) {
            return false;
        }
    }
    return true;
}

/* Returns the virtual address at the start of a mapping of this segment: the last one before the
 * segment's own that has the same place in its page as the mapping's offset. A page of the kernel
 * is at most the alignment of the segment. */
static uint64_t start_of(const GElf_Phdr *h, const struct symbol_mapping *m)
{
    uint64_t align = h->p_align > 1 ? h->p_align : 1;
    return h->p_vaddr - (h->p_vaddr - m->offset) % align;
}

/* Finds the segment of code that a mapping is of, in a file whose segments have lost their places:
 * the smallest one that is as large as the mapping, whose end is that of a page. A file with one
 * segment of code leaves no choice: the limit of a mapping may be unknown. */
static const GElf_Phdr *segment_of(const struct segments *s, const struct symbol_mapping *m)
{
    const GElf_Phdr *found = NULL;
    const GElf_Phdr *only = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const GElf_Phdr *h = &s->at[i];
        if (!is_code(h)) {
            continue;
        }
        uint64_t align = h->p_align > 1 ? h->p_align : 1;
        uint64_t size = h->p_vaddr - start_of(h, m) + h->p_memsz;
        only = h;
        n++;
        if (size <= UINT64_MAX - align && m->limit - m->start <= size + align - 1 &&
            (found == NULL || h->p_memsz < found->p_memsz)) {
            found = h;
        }
    }
    return found == NULL && n == 1 ? only : found;
}

bool segments_find(const struct segments *s, const struct symbol_mapping *m, uint64_t address,
                   uint64_t *ret_virtual)
{
    if (m->limit == 0) {
        *ret_virtual = address;
        return true;
    }
    if (address < m->start || address >= m->limit) {
        return false;
    }
    if (has_lost_places(s)) {
        const GElf_Phdr *code = segment_of(s, m);
        *ret_virtual = code == NULL ? 0 : start_of(code, m) + (address - m->start);
        return code != NULL;
    }
    uint64_t offset = address - m->start + m->offset;
    const GElf_Phdr *h = segment_at(s, offset);
    *ret_virtual = h == NULL ? 0 : h->p_vaddr + (offset - h->p_offset);
    return h != NULL;
}
