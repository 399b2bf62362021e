/** Of every annotation of a Service that is meant for Weir. */
export const ANNOTATION_PREFIX = 'weir.dev/';
