#include "pprof/fields.h"

static const struct field_table value_type_table = {
    .name = "sample type",
    .kind = {[VALUE_TYPE_TYPE] = FIELD_STRING, [VALUE_TYPE_UNIT] = FIELD_STRING}};
static const struct field_table label_table = {
    .name = "label",
    .kind = {[LABEL_KEY] = FIELD_STRING,
             [LABEL_STR] = FIELD_STRING,
             [LABEL_NUM] = FIELD_NUMBER,
             [LABEL_NUM_UNIT] = FIELD_STRING},
};
static const struct field_table sample_table = {
    .name = "sample",
    .kind = {[SAMPLE_LOCATION_ID] = FIELD_IDS,
             [SAMPLE_VALUE] = FIELD_NUMBERS,
             [SAMPLE_LABEL] = FIELD_MESSAGE},
    .sub = {[SAMPLE_LABEL] = &label_table},
    .ref = {[SAMPLE_LOCATION_ID] = PROFILE_LOCATION},
};
static const struct field_table mapping_table = {
    .name = "mapping",
    .id = MAPPING_ID,
    .kind = {[MAPPING_ID] = FIELD_ID,
             [MAPPING_START] = FIELD_NUMBER,
             [MAPPING_LIMIT] = FIELD_NUMBER,
             [MAPPING_OFFSET] = FIELD_NUMBER,
             [MAPPING_FILENAME] = FIELD_STRING,
             [MAPPING_BUILD_ID] = FIELD_STRING,
             [7] = FIELD_NUMBER, /* has_functions and so on */
             [8] = FIELD_NUMBER,
             [9] = FIELD_NUMBER,
             [10] = FIELD_NUMBER},
};
static const struct field_table line_table = {
    .name = "line",
    .id = LINE_FUNCTION_ID,
    .kind =
        {[LINE_FUNCTION_ID] = FIELD_ID, [LINE_LINE] = FIELD_NUMBER, [LINE_COLUMN] = FIELD_NUMBER},
    .ref = {[LINE_FUNCTION_ID] = PROFILE_FUNCTION},
};
static const struct field_table location_table = {
    .name = "location",
    .id = LOCATION_ID,
    .kind = {[LOCATION_ID] = FIELD_ID,
             [LOCATION_MAPPING_ID] = FIELD_NUMBER,
             [LOCATION_ADDRESS] = FIELD_NUMBER,
             [LOCATION_LINE] = FIELD_MESSAGE,
             [5] = FIELD_NUMBER /* is_folded */},
    .sub = {[LOCATION_LINE] = &line_table},
    .ref = {[LOCATION_MAPPING_ID] = PROFILE_MAPPING},
};
static const struct field_table function_table = {
    .name = "function",
    .id = FUNCTION_ID,
    .kind = {[FUNCTION_ID] = FIELD_ID,
             [FUNCTION_NAME] = FIELD_STRING,
             [FUNCTION_SYSTEM_NAME] = FIELD_STRING,
             [FUNCTION_FILENAME] = FIELD_STRING,
             [5] = FIELD_NUMBER /* start_line */},
};
const struct field_table profile_table = {
    .name = "profile",
    .kind = {[PROFILE_SAMPLE_TYPE] = FIELD_MESSAGE,
             [PROFILE_SAMPLE] = FIELD_MESSAGE,
             [PROFILE_MAPPING] = FIELD_MESSAGE,
             [PROFILE_LOCATION] = FIELD_MESSAGE,
             [PROFILE_FUNCTION] = FIELD_MESSAGE,
             [PROFILE_STRING] = FIELD_TEXT,
             [PROFILE_DROP_FRAMES] = FIELD_STRING,
             [PROFILE_KEEP_FRAMES] = FIELD_STRING,
             [PROFILE_TIME_NANOS] = FIELD_NUMBER,
             [PROFILE_DURATION_NANOS] = FIELD_NUMBER,
             [PROFILE_PERIOD_TYPE] = FIELD_MESSAGE,
             [PROFILE_PERIOD] = FIELD_NUMBER,
             [PROFILE_COMMENT] = FIELD_STRINGS,
             [PROFILE_DEFAULT_SAMPLE_TYPE] = FIELD_STRING,
             [PROFILE_DOC_URL] = FIELD_STRING},
    .sub = {[PROFILE_SAMPLE_TYPE] = &value_type_table,
            [PROFILE_SAMPLE] = &sample_table,
            [PROFILE_MAPPING] = &mapping_table,
            [PROFILE_LOCATION] = &location_table,
            [PROFILE_FUNCTION] = &function_table,
            [PROFILE_PERIOD_TYPE] = &value_type_table},
};
