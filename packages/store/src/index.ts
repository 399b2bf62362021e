export type * from './contract.ts';
export { StoreError, type StoreErrorCode } from './error.ts';
